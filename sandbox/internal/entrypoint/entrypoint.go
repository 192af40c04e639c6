// Package entrypoint runs what a container would have as its first process,
// where that is the supervisor of its commands: the image's entrypoint with a
// command that waits, or the command of a compose service. It runs beside the
// commands of the sandbox.
package entrypoint

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/sandbox"
)

// KeepAlive is the command of a container that has no supervisor: it waits, and reaps
// orphans, whoever kills its sleep. As a first process it cannot be killed from inside.
func KeepAlive() []string {
	return []string{"sh", "-c", "while :; do sleep infinity & wait $!; done"}
}

const (
	// WaitMode is the argument that makes the guest program one that only waits, and reaps
	// what is orphaned to it. Nothing in the sandbox is executed for it, so that it does
	// not matter what becomes of the programs there, and nobody there can trace it.
	WaitMode = "wait"
	// WaitName is the name of its process in lists of processes.
	WaitName = "proctor-waits"
)

// Waiting is what stands in the place of [KeepAlive] in a sandbox with a supervisor: a
// shell command as well, since entrypoints look at what they are given, which becomes the
// guest program at that path. So no program of the sandbox is executed while it waits.
func Waiting(guestPath string) []string {
	return []string{"sh", "-c", "exec " + guestPath + " " + WaitMode}
}

// Instead is a command line that ends in [KeepAlive] with [Waiting] in its place; any other
// is returned as it is, and nil for [KeepAlive] alone, which nobody needs.
func Instead(argv []string, guestPath string) []string {
	keepAlive := KeepAlive()
	before := len(argv) - len(keepAlive)
	if before < 0 || !slices.Equal(argv[before:], keepAlive) {
		return argv
	}
	if before == 0 {
		return nil
	}
	return slices.Concat(argv[:before], Waiting(guestPath))
}

// KeptOutput is how much of the end of an entrypoint's output is kept, in bytes.
const KeptOutput = 8 << 10

// Guest is the supervisor in a sandbox, the Client of package guest.
type Guest interface {
	// ExecAlone runs a command that says of itself all that there is to say.
	ExecAlone(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error)
	Processes(ctx context.Context) ([]sandbox.Process, error)
	// Done is closed when the supervisor has ended.
	Done() <-chan struct{}
	// Abandon ends the supervisor, and everything with it. Calls return why.
	Abandon(why error)
}

// Process is one that was started. It lives no longer than its sandbox.
type Process struct {
	guest    Guest
	done     chan struct{} // closed when it has ended
	released atomic.Bool
	said     *bounded.Tail // complete once done
	code     int           // once done
	err      error         // once done: the sandbox has ended first
}

// Start starts a command, which has standard input without content where stdin
// is set, and none otherwise.
func Start(ctx context.Context, g Guest, cmd sandbox.Command, stdin bool) *Process {
	p := &Process{guest: g, done: make(chan struct{}), said: bounded.NewTail(KeptOutput)}
	cmd.Stdout = p.said
	if stdin {
		cmd.Stdin = silence{g.Done()}
	}
	go func() { // ends with the process, at the latest with the sandbox
		defer close(p.done)
		st, err := g.ExecAlone(context.WithoutCancel(ctx), cmd)
		p.code, p.err = st.Code, err
	}()
	return p
}

// silence is an input without content that ends when stop is closed.
type silence struct{ stop <-chan struct{} }

func (s silence) Read([]byte) (int, error) {
	<-s.stop
	return 0, io.EOF
}

// Ended reports whether the process has ended by itself, how, and the last that
// it said.
func (p *Process) Ended() (ended bool, code int, said string) {
	if p == nil {
		return false, 0, ""
	}
	select {
	case <-p.done:
		return p.err == nil, p.code, p.said.String()
	default:
		return false, 0, ""
	}
}

// EndedError says that an entrypoint has ended.
type EndedError struct {
	Code int
	Said string
}

func (e *EndedError) Error() string {
	text := fmt.Sprintf("the image's entrypoint has ended with exit code %d, and a container ends with its first process", e.Code)
	said := strings.TrimSpace(bounded.Clean(e.Said))
	if said == "" {
		return text
	}
	// Where there is room for one line, it has the one that tells most.
	last := strings.LastIndexByte(said, '\n') + 1
	text += "; its last output: " + said[last:]
	if last > 0 {
		text += "\n" + said
	}
	return text
}

// An entrypoint is looked at until it has come to the command that waits, or has
// ended: first often, then every lookEvery. One that does neither within
// lookLimit is a program that runs beside the commands.
const (
	firstLook = 2 * time.Millisecond
	lookEvery = 25 * time.Millisecond
	lookLimit = time.Second
)

// Settle waits until an entrypoint has come to the command that waits or, where
// it never does, has run for a while. It reports whether it came to the command;
// the error is an [EndedError] when it has ended. Where it is known that the
// entrypoint stays itself, all that is waited for is its start.
func (p *Process) Settle(ctx context.Context, stays bool) (waits bool, err error) {
	begun := false
	for pause, waited := firstLook, time.Duration(0); waited < lookLimit; pause = min(2*pause, lookEvery) {
		if ended, code, said := p.Ended(); ended {
			return false, &EndedError{Code: code, Said: said}
		}
		procs, err := p.guest.Processes(ctx)
		if err != nil {
			return false, err
		}
		begun = begun || started(procs)
		if begun && (stays || waiting(procs)) {
			return !stays, nil
		}
		waited += pause
		if err := clock.Sleep(ctx, pause); err != nil {
			return false, err
		}
	}
	return false, nil
}

// started reports whether there is a process besides the supervisor.
func started(procs []sandbox.Process) bool { return len(procs) > 1 }

// waiting reports whether an entrypoint has come to the command that waits.
func waiting(procs []sandbox.Process) bool {
	return slices.ContainsFunc(procs, func(p sandbox.Process) bool { return !p.Dead && p.Name == WaitName })
}

// Release lets the sandbox outlive the process, however that ends: who calls it is going
// to end everything.
func (p *Process) Release() {
	if p != nil {
		p.released.Store(true)
	}
}

// Watch ends the sandbox when the process ends by itself, as a container ends
// with its first process. A signal is no such end: what runs inside can send one
// here, but could not to a first process.
func (p *Process) Watch() {
	go func() { // ends with the process
		<-p.done
		if ended, code, said := p.Ended(); ended && code <= 128 && !p.released.Load() {
			p.guest.Abandon(&sandbox.LostError{Reason: (&EndedError{Code: code, Said: said}).Error()})
		}
	}()
}
