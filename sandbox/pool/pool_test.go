package pool_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/sandbox/pool"
)

// What the fake backend calls its calls, and how much a sandbox that it keeps
// ready takes.
const (
	opPrepare fake.Op = "prepare"
	opTake    fake.Op = "take"

	preparedMemory = 1 << 20
)

// place is a pool on a fake backend.
type place struct {
	*testing.T
	backend *fake.Backend
	pool    *pool.Pool
}

func newPlace(t *testing.T, cfg fake.Config, opts pool.Options) place {
	t.Helper()
	cfg.Dir, cfg.Prepares = t.TempDir(), true
	b := fake.New(cfg)
	p := place{t, b, pool.New(b, opts)}
	t.Cleanup(func() {
		if err := p.pool.Close(context.Background()); err != nil {
			t.Error(err)
		}
		fake.Verify(t, b)
	})
	return p
}

// create makes a sandbox and destroys it.
func (p place) create(spec sandbox.Spec) {
	p.Helper()
	sb, err := p.pool.Create(p.Context(), spec)
	if err == nil {
		err = sb.Destroy(p.Context())
	}
	if err != nil {
		p.Fatal(err)
	}
}

// counts checks how many sandboxes were created, taken and prepared so far.
func (p place) counts(created, taken, prepared int) {
	p.Helper()
	b := p.backend
	if c, t, r := b.Count(fake.OpCreate), b.Count(opTake), b.Count(opPrepare); c != created || t != taken || r != prepared {
		p.Errorf("created %d, taken %d, prepared %d; want %d, %d, %d", c, t, r, created, taken, prepared)
	}
}

func TestTheSecondOfAKindFillsThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t, fake.Config{}, pool.Options{Size: 2})
		spec := sandbox.Spec{Name: "a", Image: sandbox.Image{Ref: "debian:12"}}
		p.create(spec)
		synctest.Wait()
		p.counts(1, 0, 0) // one alone may be the only one
		p.create(spec)
		synctest.Wait()
		p.counts(2, 0, 2)
		other := sandbox.Spec{Name: "b", Image: sandbox.Image{Ref: "debian:13"}}
		p.create(other)
		spec.Mounts, spec.Env, spec.User = []sandbox.Mount{{Source: t.TempDir(), Target: "/m"}}, []string{"A=1"}, "daemon"
		sb, err := p.pool.Create(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = sb.Destroy(context.Background()) }()
		synctest.Wait()
		p.counts(3, 1, 3)
		if got := sb.(*fake.Sandbox).Spec(); len(got.Mounts) != 1 || got.User != "daemon" || got.Name != "a" {
			t.Errorf("the sandbox that was taken is of the Spec %+v", got)
		}
	})
}

func TestIdleSandboxesAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t, fake.Config{}, pool.Options{Size: 2, Idle: time.Minute})
		spec := sandbox.Spec{Name: "a"}
		if err := p.pool.Fill(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second)
		if n := p.pool.Ready(); n != 2 {
			t.Errorf("%d are ready, want 2", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := p.pool.Ready(); n != 0 || p.backend.Prepared() != 0 {
			t.Errorf("%d are ready, %d are left, want none", n, p.backend.Prepared())
		}
		p.create(spec) // and it works as before
	})
}

func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t, fake.Config{}, pool.Options{Size: 8, Memory: 3 * preparedMemory})
		for _, ref := range []string{"a", "b"} {
			spec := sandbox.Spec{Name: ref, Image: sandbox.Image{Ref: ref}}
			p.create(spec)
			p.create(spec)
		}
		synctest.Wait()
		if n := p.backend.Prepared(); n != 3 {
			t.Errorf("%d are kept, want 3", n)
		}
	})
}

func TestWhatCannotBePrepared(t *testing.T) {
	for name, spec := range map[string]sandbox.Spec{
		"built anew":       {Image: sandbox.Image{Build: &sandbox.Build{ContextDir: "/c"}, ForceBuild: true}},
		"allow list":       {Network: sandbox.Network{Mode: sandbox.NetworkAllowlist}},
		"changing network": {Network: sandbox.Network{Switchable: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlace(t, fake.Config{}, pool.Options{})
				spec.Name = "a"
				for range 3 {
					p.create(spec)
				}
				synctest.Wait()
				p.counts(3, 0, 0)
			})
		})
	}
	t.Run("a backend that prepares none", func(t *testing.T) {
		b := fake.New(fake.Config{Dir: t.TempDir()})
		p := place{t, b, pool.New(b, pool.Options{Warn: func(err error) { t.Errorf("warned: %v", err) }})}
		for range 3 {
			p.create(sandbox.Spec{Name: "a"})
		}
		if err := p.pool.Close(t.Context()); err != nil {
			t.Error(err)
		}
		p.counts(3, 0, 0)
	})
}

func TestFailures(t *testing.T) {
	t.Run("preparing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var warned []error
			var mu sync.Mutex
			p := newPlace(t, fake.Config{Before: fake.FailAt(opPrepare, 0, nil)}, pool.Options{Warn: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				warned = append(warned, err)
			}})
			for range 4 {
				p.create(sandbox.Spec{Name: "a"})
				synctest.Wait()
			}
			p.counts(4, 0, 1)
			if len(warned) != 1 || !errors.Is(warned[0], fake.ErrInjected) {
				t.Errorf("warned of %v, want the failure once", warned)
			}
		})
	})
	t.Run("taking", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPlace(t, fake.Config{Before: fake.FailAt(opTake, 1, nil)}, pool.Options{Size: 2})
			spec := sandbox.Spec{Name: "a"}
			if err := p.pool.Fill(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			p.create(spec) // the second that is ready serves
			if n := p.backend.Count(opTake); n != 2 {
				t.Errorf("%d were tried, want 2", n)
			}
		})
	})
	t.Run("what is prepared does not serve", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPlace(t, fake.Config{Before: fake.FailAt(opTake, 0, sandbox.ErrUnsupported)}, pool.Options{Size: 2})
			spec := sandbox.Spec{Name: "a"}
			if err := p.pool.Fill(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				p.create(spec)
			}
			synctest.Wait()
			if n := p.backend.Prepared(); n != 0 || p.backend.Count(opTake) != 1 {
				t.Errorf("%d are kept, %d were tried; want none, and one try", n, p.backend.Count(opTake))
			}
		})
	})
}

func TestManyAtOnce(t *testing.T) {
	p := newPlace(t, fake.Config{}, pool.Options{Size: 3})
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			sb, err := p.pool.Create(t.Context(), sandbox.Spec{Name: string(rune('A' + i))})
			if err == nil {
				err = sb.Destroy(context.Background())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := p.pool.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := p.backend.Prepared(); n != 0 {
		t.Errorf("%d are left after Close", n)
	}
	p.create(sandbox.Spec{Name: "after"})
}
