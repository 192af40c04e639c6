package sandbox

import (
	"os/exec"
	"testing"

	"github.com/proctor-run/proctor/internal/need"
)

func TestOwnerOfSelf(t *testing.T) {
	t.Parallel()
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	if !self.Alive() {
		t.Errorf("%v is running, but Alive says it is not", self)
	}
	back, err := ParseOwner(self.String())
	if err != nil || back != self {
		t.Errorf("ParseOwner(%q) = %v, %v", self, back, err)
	}
	otherBoot := self
	otherBoot.BootID = "another"
	if otherBoot.Alive() {
		t.Error("an owner of another boot counts as alive")
	}
}

func TestDeadOwner(t *testing.T) {
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
	dead := Owner{BootID: self.BootID, PID: cmd.Process.Pid, StartTicks: 1}
	if dead.Alive() {
		t.Errorf("%v has ended, but counts as alive", dead)
	}
	reused := self
	reused.StartTicks++
	if reused.Alive() {
		t.Error("an owner whose pid was given to a later process counts as alive")
	}
}

func TestParseStartTicks(t *testing.T) {
	t.Parallel()
	const behind = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"
	for _, name := range []string{"bash", "a b", "x) S 1 (y", ""} {
		got, err := parseStartTicks([]byte("12 (" + name + ")" + behind))
		if err != nil || got != 4711 {
			t.Errorf("command name %q: got %d, %v; want 4711", name, got, err)
		}
	}
	for _, bad := range []string{"", "12 (x", "12 (x) S 1", "12 (x)" + " a b c d e f g h i j k l m n o p q r s t u"} {
		if _, err := parseStartTicks([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestParseOwnerErrors(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "a:b", "a:x:1", "a:1:x", "a:1:2:3"} {
		if _, err := ParseOwner(bad); err == nil {
			t.Errorf("ParseOwner(%q): no error", bad)
		}
	}
}
