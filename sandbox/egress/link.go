package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress/tunnel"
)

const (
	// relayLimit bounds the start of a relay.
	relayLimit = 30 * time.Second
	// reasonLimit is how long the command of a relay that carries nothing any more
	// may take to end and say why.
	reasonLimit = time.Second
)

// ExecFunc runs a command in a sandbox, as sandbox.Sandbox has it.
type ExecFunc = func(context.Context, sandbox.Command) (sandbox.ExitStatus, error)

// link is one relay and the pipes to it.
type link struct {
	exec   ExecFunc
	argv   []string
	stdin  *io.PipeWriter
	stdout *io.PipeReader
	theirs pipes
	port   uint16        // once it is started
	dead   chan struct{} // closed when it carries nothing any more
	ended  chan struct{} // closed when the relay's command is over
	done   chan struct{} // closed when all of it is over

	mu      sync.Mutex
	stopped bool // on purpose
}

// pipes are the relay's ends.
type pipes struct {
	stdin  *io.PipeReader
	stdout *io.PipeWriter
}

func newLink(exec ExecFunc, argv []string) *link {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	return &link{
		exec: exec, argv: argv, stdin: inW, stdout: outR, theirs: pipes{inR, outW},
		dead: make(chan struct{}), ended: make(chan struct{}), done: make(chan struct{}),
	}
}

// start starts the relay; serve is then called for each connection that it
// carries, concurrently. Unless stop was called, lost says why it carries none any
// more, after all calls of serve have returned.
//
// The relay's command is never cancelled once it runs: that would end what
// other commands left running since. It ends with its standard input.
func (l *link) start(ctx context.Context, serve func(*tunnel.Stream), lost func(error)) error {
	// The relay lives as long as the sandbox, not as long as this call.
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var end error
	go func() { // joined by the one that serves, or below
		defer close(l.ended)
		defer cancel()
		end = l.run(run)
		_ = l.theirs.stdout.CloseWithError(io.EOF)
		_ = l.theirs.stdin.CloseWithError(io.ErrClosedPipe)
	}()
	limit, stopLimit := context.WithTimeoutCause(ctx, relayLimit, fmt.Errorf("no answer within %v", relayLimit))
	defer stopLimit()
	stop := context.AfterFunc(limit, l.closePipes)
	port, err := tunnel.ReadHello(l.stdout)
	if !stop() {
		err = context.Cause(limit)
	}
	if err != nil {
		l.closePipes()
		cancel()
		<-l.ended
		close(l.done)
		if limit.Err() == nil {
			err = errors.Join(err, end)
		}
		return err
	}
	l.port = port
	go func() { //nolint:contextcheck // joined by wait: the link outlives the call that made it
		defer close(l.done)
		why := l.serve(serve)
		if l.onPurpose() {
			<-l.ended
			return
		}
		select {
		case <-l.ended:
			why = end
		case <-time.After(reasonLimit): // the pipes are closed, but the program goes on
		}
		lost(why)
		<-l.ended
	}()
	return nil
}

// run runs the relay to its end, and says how it ended.
func (l *link) run(ctx context.Context) error {
	said := bounded.NewTail(2 << 10)
	status, err := l.exec(ctx, sandbox.Command{
		Argv: l.argv, User: "0:0", Dir: "/", Stdin: l.theirs.stdin, Stdout: l.theirs.stdout, Stderr: said,
	})
	if err != nil {
		return err
	}
	return fmt.Errorf("it ended with code %d: %s", status.Code, strings.TrimSpace(said.String()))
}

// serve serves the connections that the relay carries, until it carries none
// any more, and says why.
func (l *link) serve(serve func(*tunnel.Stream)) error {
	m := tunnel.NewMux(l.stdout, l.stdin)
	var why error
	var work sync.WaitGroup
	work.Go(func() {
		why = m.Run()
		l.closePipes()
	})
	for {
		s, err := m.Accept()
		if err != nil {
			break
		}
		work.Go(func() { serve(s) })
	}
	close(l.dead)
	work.Wait()
	return why
}

func (l *link) closePipes() {
	_ = l.stdin.Close()
	_ = l.stdout.Close()
}

// stop lets the relay end. It may be called at any time and repeatedly.
func (l *link) stop() {
	l.mu.Lock()
	l.stopped = true
	l.mu.Unlock()
	l.closePipes()
}

func (l *link) onPurpose() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped
}

// alive reports whether it carries connections.
func (l *link) alive() bool { return !isClosed(l.dead) }

// over reports whether all of it is over.
func (l *link) over() bool { return isClosed(l.done) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// wait returns when all of it is over.
func (l *link) wait(ctx context.Context) error {
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
