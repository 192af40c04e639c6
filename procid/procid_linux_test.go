package procid

import (
	"errors"
	"io/fs"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/need"
)

// TestZombie: a process that has ended is not alive because nobody has waited for it.
func TestZombie(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(need.Program(t, "cat"))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	id := ID{BootID: self.BootID, PID: cmd.Process.Pid}
	if id.StartTicks, err = startTicks(id.PID); err != nil || !id.Alive() {
		t.Errorf("it runs, but counts as dead: %v", err)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	// It has ended, and still is there to be waited for.
	if err := unix.Waitid(unix.P_PID, id.PID, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if id.Alive() {
		t.Error("a zombie counts as alive")
	}
	if _, err := startTicks(id.PID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
