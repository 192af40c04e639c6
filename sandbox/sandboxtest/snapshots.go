package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

// takesSnapshot reports whether a sandbox is a Snapshotter where it is.
func takesSnapshot(t *testing.T, sb sandbox.Sandbox) bool {
	t.Helper()
	s, ok := sandbox.As[sandbox.Snapshotter](sb)
	if !ok {
		return false
	}
	can := s.CanSnapshot()
	shot, err := s.Snapshot(call(t), "asked")
	if errors.Is(can, sandbox.ErrUnsupported) != errors.Is(err, sandbox.ErrUnsupported) {
		t.Errorf("CanSnapshot: %v; Snapshot: %v", can, err)
	}
	if err != nil {
		return !errors.Is(err, sandbox.ErrUnsupported) // the obligations say what is wrong
	}
	if err := shot.Release(call(t)); err != nil {
		t.Errorf("Release: %v", err)
	}
	return true
}

// snapshot takes one.
func snapshot(t *testing.T, sb sandbox.Sandbox) sandbox.Snapshot {
	t.Helper()
	s, ok := sandbox.As[sandbox.Snapshotter](sb)
	if !ok {
		t.Fatal("the sandbox is no Snapshotter, and others of the backend are")
	}
	shot, err := s.Snapshot(call(t), "here")
	if err != nil {
		t.Fatalf("Snapshot: %v", err)
	}
	if shot.Name() != "here" {
		t.Errorf("the snapshot is called %q, want %q", shot.Name(), "here")
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		for range 2 {
			if err := shot.Release(ctx); err != nil {
				t.Errorf("Release: %v", err)
			}
		}
	})
	return shot
}

// fork makes a sandbox of a snapshot that is destroyed when t ends.
func (s *suite) fork(t *testing.T, shot sandbox.Snapshot, mounts ...sandbox.Mount) sandbox.Sandbox {
	t.Helper()
	spec := s.spec()
	spec.Mounts = append(spec.Mounts, mounts...)
	sb, err := shot.Fork(call(t), spec)
	if err != nil {
		t.Fatalf("Fork: %v", err)
	}
	destroyLater(t, sb)
	return sb
}

func destroyLater(t *testing.T, sb sandbox.Sandbox) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := sb.Destroy(ctx); err != nil {
			t.Errorf("destroying sandbox %s: %v", sb.ID(), err)
		}
	})
}

// shows checks the content of dir/name; an empty one means that it is not there.
func shows(t *testing.T, sb sandbox.Sandbox, dir, name, want string) {
	t.Helper()
	err := sb.Download(call(t), dir+"/"+name, new(counter))
	if want == "" {
		if !errors.Is(err, sandbox.ErrNotExist) {
			t.Errorf("%s of sandbox %s is there (%v)", name, sb.ID(), err)
		}
		return
	}
	if err != nil {
		t.Errorf("%s of sandbox %s: %v", name, sb.ID(), err)
		return
	}
	if got := download(t, sb, dir+"/"+name)[name].body; got != want {
		t.Errorf("%s of sandbox %s holds %q, want %q", name, sb.ID(), got, want)
	}
}

func put(t *testing.T, sb sandbox.Sandbox, dir, name, body string) {
	t.Helper()
	upload(t, sb, dir, pack(t, map[string]entry{name: file(0o644, body)}))
}

var snapshotObligations = []obligation{
	{"Fork begins with the files of the snapshot, and shares none", snapshots, func(t *testing.T, s *suite) {
		sb, dir := s.fresh(t), s.dir()
		put(t, sb, dir, "f", "kept")
		shot := snapshot(t, sb)
		shows(t, sb, dir, "f", "kept")
		put(t, sb, dir, "f", "later")
		a, b := s.fork(t, shot), s.fork(t, shot)
		put(t, a, dir, "f", "of a")
		put(t, b, dir, "g", "of b")
		shows(t, sb, dir, "f", "later")
		shows(t, sb, dir, "g", "")
		shows(t, a, dir, "f", "of a")
		shows(t, a, dir, "g", "")
		shows(t, b, dir, "f", "kept")
	}},
	{"Snapshot outlives its sandbox, and forks outlive the snapshot", snapshots, func(t *testing.T, s *suite) {
		sb, dir := s.fresh(t), s.dir()
		put(t, sb, dir, "f", "kept")
		shot := snapshot(t, sb)
		if err := sb.Destroy(call(t)); err != nil {
			t.Fatalf("Destroy: %v", err)
		}
		forked := s.fork(t, shot)
		if err := shot.Release(call(t)); err != nil {
			t.Fatalf("Release: %v", err)
		}
		shows(t, forked, dir, "f", "kept")
		put(t, forked, dir, "g", "new")
		shows(t, forked, dir, "g", "new")
	}},
	{"Snapshot keeps Reset as it was, and a fork's Reset goes to the snapshot", snapshots, func(t *testing.T, s *suite) {
		sb, dir := s.fresh(t), s.dir()
		put(t, sb, dir, "f", "kept")
		shot := snapshot(t, sb)
		forked := s.fork(t, shot)
		put(t, forked, dir, "f", "changed")
		put(t, forked, dir, "g", "new")
		reset(t, forked)
		shows(t, forked, dir, "f", "kept")
		shows(t, forked, dir, "g", "")
		put(t, sb, dir, "g", "new")
		reset(t, sb)
		shows(t, sb, dir, "f", "")
		shows(t, sb, dir, "g", "")
		shows(t, s.fork(t, shot), dir, "f", "kept") // nothing of it was taken along
	}},
	{"Snapshots of forks hold what all before them held", snapshots, func(t *testing.T, s *suite) {
		sb, dir := s.fresh(t), s.dir()
		for i := range 3 {
			put(t, sb, dir, fmt.Sprintf("f%d", i), "kept")
			sb = s.fork(t, snapshot(t, sb))
		}
		for i := range 3 {
			shows(t, sb, dir, fmt.Sprintf("f%d", i), "kept")
		}
	}},
	{"Snapshot keeps deletions, modes, links and replaced directories", processes | privateRoot | snapshots, func(t *testing.T, s *suite) {
		below, dir := s.fresh(t), s.dir()
		apart(t, below)
		// What is deleted lies in a layer, and nothing of the system is touched:
		// a backend may be broken in just that.
		output(t, below, sh(`mkdir -p `+dir+`/replaced && cd `+dir+` && echo x >gone && echo x >replaced/old`))
		sb := s.fork(t, snapshot(t, below))
		output(t, sb, sh(`cd `+dir+` && rm gone && rm -r replaced && mkdir replaced && echo new >replaced/only &&
			echo x >plain && chmod 4755 plain && ln plain second && ln -s plain soft && mkfifo pipe && mkdir sub && chmod 1777 sub`))
		forked := s.fork(t, snapshot(t, sb))
		for _, in := range []sandbox.Sandbox{sb, forked} {
			output(t, in, sh(`cd `+dir+` && ! test -e gone && test "$(ls -A replaced)" = only && test "$(stat -c %a plain)" = 4755 &&
				test "$(stat -c %h plain)" = 2 && test "$(stat -c %i plain)" = "$(stat -c %i second)" && test "$(readlink soft)" = plain && test -p pipe && test "$(stat -c %a sub)" = 1777`))
		}
	}},
	{"Snapshot ends processes, and forks have none of them", processes | snapshots, func(t *testing.T, s *suite) {
		sb, tag := s.fresh(t), s.tag()
		exec(t, sb, tagged(tag, daemonScript))
		waitAlive(t, sb, tag)
		shot := snapshot(t, sb)
		gone(t, sb, tag)
		gone(t, s.fork(t, shot), tag)
	}},
	{"Forks have mounts, names and variables of their own", mounted | snapshots, func(t *testing.T, s *suite) {
		one, two, target := t.TempDir(), t.TempDir(), s.dir()
		sb := s.mount(t, sandbox.Mount{Source: one, Target: target})
		put(t, sb, target, "f", "of one")
		shot := snapshot(t, sb)
		forked := s.fork(t, shot, sandbox.Mount{Source: two, Target: target})
		shows(t, forked, target, "f", "")
		put(t, forked, target, "f", "of two")
		readHost(t, one+"/f", "of one")
		readHost(t, two+"/f", "of two")
		if forked.ID() == sb.ID() {
			t.Errorf("both are called %s", sb.ID())
		}
	}},
	{"Fork of several sandboxes leaves no snapshot behind", snapshots, func(t *testing.T, s *suite) {
		sb, dir := s.fresh(t), s.dir()
		put(t, sb, dir, "f", "kept")
		forks, err := sandbox.Fork(call(t), sb, s.spec(), s.spec(), s.spec())
		if err != nil || len(forks) != 3 {
			t.Fatalf("Fork: %d sandboxes, error %v", len(forks), err)
		}
		for _, f := range forks {
			destroyLater(t, f)
			shows(t, f, dir, "f", "kept")
		}
		var same sandbox.Spec
		same.Network.Mode = "nonsense"
		if forks, err := sandbox.Fork(call(t), sb, s.spec(), same); err == nil && !s.cfg.Simulated {
			t.Errorf("a Spec that cannot be created: %d sandboxes and no error", len(forks))
		}
	}},
}

// reset brings a sandbox back that has to be able to.
func reset(t *testing.T, sb sandbox.Sandbox) {
	t.Helper()
	r, ok := sandbox.As[sandbox.Resetter](sb)
	if !ok {
		t.Fatal("a Snapshotter that is no Resetter")
	}
	if err := r.Reset(call(t)); err != nil {
		t.Fatalf("Reset: %v", err)
	}
}
