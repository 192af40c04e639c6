package sandboxtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

// prepare makes a sandbox ready, and skips where the backend makes none.
func (s *suite) prepare(t *testing.T) sandbox.Prepared {
	t.Helper()
	p, ok := s.backend.(sandbox.Preparer)
	if !ok {
		t.Skip("the backend is no Preparer")
	}
	spec := s.spec()
	ready, err := p.Prepare(call(t), sandbox.Spec{Name: spec.Name, Image: spec.Image, Resources: spec.Resources, Network: spec.Network})
	if errors.Is(err, sandbox.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("Prepare: %v", err)
	}
	t.Cleanup(func() {
		if err := ready.Destroy(call(t)); err != nil {
			t.Errorf("Destroy of what was prepared: %v", err)
		}
	})
	return ready
}

// take makes it the sandbox of a Spec, and skips where it has to be created.
func take(t *testing.T, ready sandbox.Prepared, spec sandbox.Spec) sandbox.Sandbox {
	t.Helper()
	sb, err := ready.Take(call(t), spec)
	if errors.Is(err, sandbox.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("Take: %v", err)
	}
	destroyLater(t, sb)
	return sb
}

var preparedObligations = []obligation{
	{"Take gives what Create would: variables, user, working directory", processes | otherUser, func(t *testing.T, s *suite) {
		spec := s.spec()
		spec.Env, spec.User, spec.Workdir = []string{"SANDBOXTEST=late"}, s.cfg.User.Name, s.dir()
		sb := take(t, s.prepare(t), spec)
		upload(t, sb, spec.Workdir, pack(t, nil))
		got := output(t, sb, sh(`echo "$SANDBOXTEST $(id -un) $PWD"`))
		if want := "late " + s.cfg.User.Name + " " + spec.Workdir; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}},
	{"Take mounts late, also below mounts, files, and read-only", processes | mounted, func(t *testing.T, s *suite) {
		outer, inner, target := t.TempDir(), t.TempDir(), s.dir()
		writeHost(t, inner+"/f", "inside")
		writeHost(t, outer+"/only", "file")
		spec := s.spec()
		spec.Mounts = append(spec.Mounts, sandbox.Mount{Source: outer, Target: target},
			sandbox.Mount{Source: inner, Target: target + "/sub", ReadOnly: true},
			sandbox.Mount{Source: outer + "/only", Target: target + "-file"})
		sb := take(t, s.prepare(t), spec)
		output(t, sb, sh(`cd `+target+` && test "$(cat sub/f)" = inside && ! touch sub/g 2>/dev/null && echo out >h && test "$(cat `+target+`-file)" = file`))
		readHost(t, outer+"/h", "out\n")
		same := s.spec()
		same.Mounts = spec.Mounts
		list := sh(`grep -c ' ` + target + `' /proc/self/mountinfo`)
		if got, want := output(t, sb, list), output(t, s.create(t, same), list); got != want {
			t.Errorf("%s mounts are seen, %s in a sandbox that was created", got, want)
		}
	}},
	{"Nothing shows that a sandbox was ready before", processes, func(t *testing.T, s *suite) {
		spec := s.spec()
		taken, created := take(t, s.prepare(t), spec), s.fresh(t)
		// Names of sandboxes are their own; everything else is alike.
		look := sh(`env | grep -v HOSTNAME | sort; ls -A / /root /tmp 2>&1; id; ps -e 2>/dev/null | wc -l; cut -d' ' -f2- /proc/self/mounts | cut -d, -f1 | sort; ulimit -a`)
		a := strings.ReplaceAll(output(t, taken, look), taken.ID(), "ID")
		b := strings.ReplaceAll(output(t, created, look), created.ID(), "ID")
		if a != b {
			t.Errorf("taken:\n%s\ncreated:\n%s", a, b)
		}
	}},
	{"What was prepared can be taken once, or destroyed", 0, func(t *testing.T, s *suite) {
		ready := s.prepare(t)
		sb := take(t, ready, s.spec())
		if err := ready.Destroy(call(t)); err != nil {
			t.Errorf("Destroy after Take: %v", err)
		}
		mark(t, sb)
		for range 2 {
			if err := s.prepare(t).Destroy(call(t)); err != nil {
				t.Errorf("Destroy: %v", err)
			}
		}
	}},
	{"A sandbox that was taken can be reset", 0, func(t *testing.T, s *suite) {
		spec, dir := s.spec(), s.dir()
		sb := take(t, s.prepare(t), spec)
		r, ok := sandbox.As[sandbox.Resetter](sb)
		if !ok {
			t.Skip("the sandbox is no Resetter")
		}
		put(t, sb, dir, "f", "x")
		if err := r.Reset(call(t)); err != nil {
			t.Fatalf("Reset: %v", err)
		}
		shows(t, sb, dir, "f", "")
	}},
}
