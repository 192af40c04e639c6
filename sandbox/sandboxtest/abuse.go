package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/sandbox"
)

// abuse is something that a command does to others on its machine.
type abuse struct {
	name   string
	script string // ends by itself within seconds, or is ended
	// silent: the script prints what it was let do, which has to be nothing.
	silent bool
	// long: it takes more than seconds.
	long bool
	// spoils: afterwards no command can be run, and files can be read.
	spoils bool
	// exhausts: a kernel of the sandbox's own may run out of the memory that it is given
	// for itself, and then says that it did.
	exhausts bool
	// own: it is about settings that are the sandbox's own with a kernel of its own.
	own bool
}

var abuses = []abuse{
	{name: "forks without end", script: `f() { f | f & }; f; sleep 2`},
	{name: "memory without end", script: `for i in 1 2 3; do head -c 1G /dev/zero | tail >/dev/null & done; wait`},
	{name: "open files without end", script: `while exec {fd}<>/dev/null; do :; done 2>/dev/null`},
	{name: "one file without end", script: `for i in $(seq 20); do head -c 50M /dev/zero >>/root/much || exit; done; sleep 2`},
	{name: "output without end", script: `timeout -s KILL 2 yes`},
	{name: "processes that no signal ends", script: `for i in $(seq 20); do (trap '' TERM HUP INT QUIT; while :; do sleep 0.1; done) & done; sleep 1`},
	{name: "mounts", silent: true, script: `mkdir -p /tmp/m; for try in "-t tmpfs none" "-t proc proc" "-t sysfs sys" "--bind /proc" "-o remount,rw"; do
mount $try /tmp/m 2>/dev/null && echo "mount $try"; done; umount /proc 2>/dev/null && echo "umount /proc"; true`},
	{name: "settings of the kernel", silent: true, own: true, script: `for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/vm/drop_caches /proc/sysrq-trigger /sys/kernel/mm/ksm/run; do
test -e $f && (echo 1 > $f) 2>/dev/null && echo "wrote $f"; done; true`},
	{name: "signals to everything", own: true, script: `for s in STOP TERM KILL; do kill -$s 1; sleep 0.2; kill -$s -1; done 2>/dev/null`},
	{name: "no program is left", spoils: true, script: `cd /usr/bin; exec 2>/dev/null; rm -f $(ls | grep -vx rm | grep -vx bash); rm -f /bin/sh /bin/bash /usr/bin/*`},
	{name: "files without end", long: true, exhausts: true, script: `mkdir /tmp/many; cd /tmp/many; for i in $(seq 1000); do mkdir $i; (cd $i; seq 1000 | xargs touch); done; ls | wc -l >/dev/null`},
}

// AbuseConfig says what Abuse is asked of.
type AbuseConfig struct {
	Backend sandbox.Backend
	// Spec is the base of all sandboxes, as in Config.
	Spec sandbox.Spec
	// OwnKernel: sandboxes have a kernel of their own, whose settings are theirs.
	OwnKernel bool
	// Now is the clock.
	Now func() time.Time
	// Long asks also for what takes minutes.
	Long bool
}

// Abuse holds a backend that enforces limits to this: whatever a command does within
// them, it can be ended, its sandbox works afterwards and is removed, and another sandbox
// works all the time. How much longer the other one's commands take meanwhile is logged.
// The image must have bash, coreutils, mount and xargs.
func Abuse(t *testing.T, cfg AbuseConfig) {
	t.Helper()
	neighbour := abused(t, cfg, "neighbour")
	alone := cfg.measure(t, neighbour, doneAfter(2*time.Second))
	for _, a := range abuses {
		t.Run(a.name, func(t *testing.T) { //nolint:paralleltest // one after the other: each has the machine
			if !cfg.Long && a.long {
				t.Skip("it takes minutes, and AbuseConfig.Long is not set")
			}
			if a.own && cfg.OwnKernel {
				t.Skip("the kernel is the sandbox's own")
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				a.commit(t, cfg, abused(t, cfg, "abuser"))
			}()
			beside := cfg.measure(t, neighbour, done)
			t.Logf("95th percentile of the neighbour's commands: %v, alone %v", beside.Round(time.Microsecond), alone.Round(time.Microsecond))
		})
	}
}

// abused is a sandbox with limits.
func abused(t *testing.T, cfg AbuseConfig, name string) sandbox.Sandbox {
	t.Helper()
	spec := cfg.Spec
	spec.Name = name
	spec.Resources = sandbox.Resources{CPUs: 1, MemoryMB: 256, StorageMB: 256, PIDs: 256}
	sb, err := cfg.Backend.Create(t.Context(), spec)
	if err != nil {
		t.Error(err)
		return nil
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
		defer cancel()
		if err := sb.Destroy(ctx); err != nil {
			t.Error(err)
		}
	})
	return sb
}

// commit lets a sandbox be abused.
func (a abuse) commit(t *testing.T, cfg AbuseConfig, sb sandbox.Sandbox) {
	if sb == nil {
		return
	}
	mark, err := sb.Mark(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	var out bytes.Buffer
	to := io.Discard
	if a.silent {
		to = &out
	}
	_, err = sb.Exec(t.Context(), sandbox.Command{Argv: []string{"bash", "-c", a.script}, Stdout: to, Stderr: io.Discard, Timeout: 5 * time.Minute})
	if lost, ok := errors.AsType[*sandbox.LostError](err); ok && a.exhausts && cfg.OwnKernel && strings.Contains(lost.Reason, "out of memory") {
		return
	}
	if err != nil {
		t.Errorf("the sandbox is gone: %v", err)
		return
	}
	if out.Len() > 0 {
		t.Errorf("it was let do this:\n%s", out.String())
	}
	if err := sb.KillTree(t.Context(), mark, 0); err != nil {
		t.Error(err)
		return
	}
	if a.spoils {
		if err := sb.Download(t.Context(), "/etc/passwd", io.Discard); err != nil {
			t.Errorf("afterwards no file can be read: %v", err)
		}
		return
	}
	out.Reset()
	if _, err := sb.Exec(t.Context(), sandbox.Command{Shell: "echo fine", Stdout: &out}); err != nil || out.String() != "fine\n" {
		t.Errorf("afterwards a command says %q: %v", out.String(), err)
	}
}

func doneAfter(d time.Duration) <-chan struct{} {
	done := make(chan struct{})
	time.AfterFunc(d, func() { close(done) })
	return done
}

// measure runs commands one after the other until done is closed, and returns the 95th
// percentile of what they took.
func (cfg AbuseConfig) measure(t *testing.T, sb sandbox.Sandbox, done <-chan struct{}) time.Duration {
	t.Helper()
	if sb == nil {
		<-done
		return 0
	}
	var took []time.Duration
	for {
		began := cfg.Now()
		if st, err := sb.Exec(t.Context(), sandbox.Command{Argv: []string{"true"}}); err != nil || st.Code != 0 {
			t.Errorf("the neighbour's command: %+v, %v", st, err)
			<-done
			return 0
		}
		took = append(took, cfg.Now().Sub(began))
		select {
		case <-done:
			slices.Sort(took)
			return took[len(took)*95/100]
		default:
		}
	}
}
