package procid

import (
	"os/exec"
	"testing"

	"github.com/proctor-run/proctor/internal/need"
)

func TestSelf(t *testing.T) {
	t.Parallel()
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	if !self.Alive() {
		t.Errorf("%v is running, but Alive says it is not", self)
	}
	back, err := Parse(self.String())
	if err != nil || back != self {
		t.Errorf("Parse(%q) = %v, %v", self, back, err)
	}
	otherBoot := self
	otherBoot.BootID = "another"
	if otherBoot.Alive() {
		t.Error("an owner of another boot counts as alive")
	}
}

func TestDead(t *testing.T) {
	t.Parallel()
	path := need.Program(t, "true")
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	dead := ID{BootID: self.BootID, PID: cmd.Process.Pid, StartTicks: 1}
	if dead.Alive() {
		t.Errorf("%v has ended, but counts as alive", dead)
	}
	reused := self
	reused.StartTicks++
	if reused.Alive() {
		t.Error("an owner whose pid was given to a later process counts as alive")
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "a:b", "a:x:1", "a:1:x", "a:1:2:3"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("Parse(%q): no error", bad)
		}
	}
}
