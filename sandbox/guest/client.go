package guest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/frames"
)

// Options of a connection to a supervisor.
type Options struct {
	// Build is the version of this program. The supervisor must be of the
	// same build.
	Build string
	// Env is below the Env of each command: the image's, then the Spec's.
	// PATH and HOME are set by the supervisor where neither has them.
	Env []string
	// User and Workdir are for commands that name none; empty means root
	// (uid 0) and "/".
	User, Workdir string
	// Powerless: no command has a capability or can gain one, whoever it runs as.
	// The supervisor needs CAP_SETPCAP for that; without it commands are errors.
	Powerless bool
}

// answerLimit is how long the supervisor has, beyond the grace, to prove that
// processes are gone before it counts as not answering.
const answerLimit = killLimit + 20*time.Second

// killLimit is how long the supervisor continues killing before it says that it
// could not end everything.
const killLimit = 20 * time.Second

// ErrGone is returned by calls when the supervisor has ended without Close.
var ErrGone = errors.New("the guest supervisor is gone")

// errSilent is returned by calls that were ended and whose end the supervisor
// did not confirm.
var errSilent = errors.New("the guest supervisor does not answer, processes may be left")

// Client speaks to one supervisor. Its methods may be called concurrently and
// have the semantics of sandbox.Sandbox.
type Client struct {
	opts  Options
	in    io.ReadCloser
	out   io.WriteCloser
	w     *frames.Writer
	bufs  frames.Pool
	done  chan struct{} // closed when reading has ended
	heard atomic.Uint64 // frames from the supervisor

	mu     sync.Mutex
	calls  map[uint32]*call
	lastID uint32
	closed bool
	err    error // why reading has ended
	// abandoned: err is what Abandon was told.
	abandoned bool

	running sync.WaitGroup // watchers of calls; none is added once closed
}

// ending says how a call is ended from outside: by a frame that is sent when
// the context ends or the timeout passes.
type ending struct {
	timeout time.Duration // 0 means none
	typ     frames.Type
	payload []byte
	limit   time.Duration // for the supervisor's answer to the frame
}

// cancel gives up a call.
var cancel = ending{typ: reqCancel, limit: answerLimit}

// call is one request under way.
type call struct {
	id     uint32
	data   *frames.Inbox  // output, a tar, and at last the reply
	credit *frames.Credit // for standard input or a tar

	over      chan struct{} // closed by end
	abandoned chan struct{} // closed when the supervisor did not answer to ending
	timedOut  atomic.Bool   // the timeout passed before the context ended
}

// Dial greets the supervisor whose standard output and input are r and w, and
// returns when it has answered. It owns both and closes them, also when it
// fails. Reading from r must end when r is closed.
func Dial(ctx context.Context, r io.ReadCloser, w io.WriteCloser, opts Options) (*Client, error) {
	c := &Client{
		opts: opts, in: r, out: w, w: frames.NewWriter(w),
		done: make(chan struct{}), calls: map[uint32]*call{},
	}
	stop := context.AfterFunc(ctx, func() { c.closePipes() })
	err := c.greet()
	if !stop() {
		err = fmt.Errorf("greeting the guest supervisor: %w", context.Cause(ctx))
	}
	if err != nil {
		c.closePipes()
		return nil, err
	}
	go c.read() // ends when r does; Close waits for it
	return c, nil
}

// greet sends and reads at the same time: a supervisor that refuses at once
// must not keep the client in its write.
func (c *Client) greet() error {
	own := greetingOf(c.opts.Build)
	sent := make(chan error, 1)
	go func() {
		_, err := c.out.Write(own.Encode())
		sent <- err
	}()
	theirs, err := frames.ReadGreeting(c.in, magic)
	if err == nil {
		err = checkGreeting(own, theirs)
	}
	if err != nil {
		c.closePipes()
		<-sent //nolint:errcheck // its pipes are closed
		return fmt.Errorf("greeting the guest supervisor: %w", err)
	}
	if err := <-sent; err != nil {
		return fmt.Errorf("greeting the guest supervisor: %w", err)
	}
	return nil
}

func (c *Client) closePipes() {
	_ = c.out.Close()
	_ = c.in.Close()
}

// Close ends the connection, and with it the supervisor and every process in
// its sandbox. Calls under way and later ones return sandbox.ErrDestroyed. It
// may be called repeatedly and concurrently.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.closePipes()
	<-c.done
	c.running.Wait()
	return nil
}

// Abandon ends the connection as Close does, for a reason: calls under way and
// later ones return it. It does not wait.
func (c *Client) Abandon(why error) {
	c.mu.Lock()
	if c.err == nil {
		c.err, c.abandoned = why, true
	}
	c.mu.Unlock()
	c.closePipes()
}

// SetDefaults changes what Options says of commands, before the first one.
func (c *Client) SetDefaults(env []string, user, workdir string) {
	c.opts.Env, c.opts.User, c.opts.Workdir = env, user, workdir
}

// Done is closed when the supervisor has ended or the Client was closed.
func (c *Client) Done() <-chan struct{} { return c.done }

// read is the only reader of the connection. It never waits for a consumer
// and never writes.
func (c *Client) read() {
	r := bufio.NewReaderSize(c.in, frames.MaxData)
	for {
		f, err := frames.Read(r, &c.bufs, replyLimit)
		if err == nil {
			c.heard.Add(1)
			err = c.dispatch(f)
		}
		if err != nil {
			c.mu.Lock()
			if c.err == nil {
				c.err = err
			}
			c.mu.Unlock()
			c.closePipes()
			close(c.done)
			return
		}
	}
}

func (c *Client) dispatch(f frames.Frame) error {
	if f.Type == repPong {
		return nil // that it was heard is all
	}
	c.mu.Lock()
	k := c.calls[f.ID]
	c.mu.Unlock()
	if k == nil {
		return nil // of a call that was given up
	}
	switch f.Type {
	case repStdout, repStderr:
		return k.data.Push(f)
	case repCredit:
		n, err := frames.CreditOf(f.Payload)
		if err != nil {
			return err
		}
		return k.credit.Add(n)
	case repDone:
		k.credit.Close()
		k.data.End(f)
		return nil
	default:
		return fmt.Errorf("%w: unknown frame of type %d", frames.ErrProtocol, f.Type)
	}
}

// begin registers a call, sends its request and sees to its ending. Every call
// that has begun is given to end.
func (c *Client) begin(ctx context.Context, typ frames.Type, payload []byte, e ending) (*call, error) {
	k := &call{
		data: frames.NewInbox(windowOf(typ)), credit: frames.NewCredit(windowOf(typ)),
		over: make(chan struct{}), abandoned: make(chan struct{}),
	}
	c.mu.Lock()
	if err := c.goneLocked(); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	if ctx.Err() != nil {
		c.mu.Unlock()
		return nil, context.Cause(ctx)
	}
	for {
		c.lastID++
		if _, used := c.calls[c.lastID]; !used {
			break
		}
	}
	k.id = c.lastID
	c.calls[k.id] = k
	c.running.Add(1)
	c.mu.Unlock()
	if err := c.send(typ, k.id, payload); err != nil {
		c.running.Done()
		c.end(k)
		return nil, err
	}
	go func() { // ends with the call or, when it is stuck in a write, with Close
		defer c.running.Done()
		if typ == reqMark || typ == reqKillTree || typ == reqProcesses {
			sent := make(chan struct{})
			close(sent)
			c.running.Go(func() { c.listen(k, sent) })
		}
		c.watch(ctx, k, e)
	}()
	return k, nil
}

// watch sends the ending of k when it is due.
func (c *Client) watch(ctx context.Context, k *call, e ending) {
	var timeout <-chan time.Time
	if e.timeout > 0 {
		timer := time.NewTimer(e.timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-k.over:
		return
	case <-ctx.Done():
	case <-timeout:
		k.timedOut.Store(true)
	}
	// The limit runs also while the write below waits.
	limit := time.AfterFunc(e.limit, func() { close(k.abandoned) })
	defer limit.Stop()
	sent := make(chan struct{})
	c.running.Go(func() { c.listen(k, sent) })
	_ = c.send(e.typ, k.id, e.payload)
	close(sent)
	<-k.over
}

func (c *Client) end(k *call) {
	close(k.over)
	k.credit.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, k.id)
}

// send writes a frame; when that fails the connection is over.
func (c *Client) send(typ frames.Type, id uint32, payload []byte) error {
	if err := c.w.Send(typ, id, payload); err != nil {
		return c.lost()
	}
	return nil
}

// lost waits until the reader has noticed the end, and says why.
func (c *Client) lost() error {
	c.closePipes()
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.goneLocked()
}

// goneLocked returns why no call can be made, or nil.
func (c *Client) goneLocked() error {
	switch {
	case c.closed:
		return sandbox.ErrDestroyed
	case c.err == nil:
		return nil
	case c.abandoned:
		return c.err
	case errors.Is(c.err, io.EOF):
		return ErrGone
	default:
		return fmt.Errorf("%w: %w", ErrGone, c.err)
	}
}

// next returns the next data frame of k, or its reply as the last one.
func (c *Client) next(k *call) (frames.Frame, error) {
	f, ok := k.data.Pop(c.done, k.abandoned)
	if ok {
		return f, nil
	}
	select {
	case <-c.done:
		return frames.Frame{}, c.lost()
	default:
		return frames.Frame{}, errSilent
	}
}

// consumed takes back a data frame and grants the supervisor as much.
func (c *Client) consumed(k *call, f frames.Frame) {
	grant := k.data.Consumed(len(f.Payload))
	c.bufs.Put(f.Payload)
	if grant > 0 {
		_ = c.w.SendCredit(reqCredit, k.id, grant)
	}
}

// ask makes a call that has no data.
func (c *Client) ask(ctx context.Context, typ frames.Type, payload []byte, e ending) (reply, error) {
	k, err := c.begin(ctx, typ, payload, e)
	if err != nil {
		return reply{}, err
	}
	defer c.end(k)
	for {
		f, err := c.next(k)
		if err != nil {
			return reply{}, err
		}
		if f.Type == repDone {
			return c.result(ctx, f)
		}
	}
}

// result is what a reply says, as the contract has it.
func (c *Client) result(ctx context.Context, f frames.Frame) (reply, error) {
	r, err := decodeReply(f.Payload)
	if err == nil && r.failure == failCanceled {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = r.err()
	}
	return r, err
}

// Mark notes which processes exist now. The mark is good as long as the
// supervisor runs.
func (c *Client) Mark(ctx context.Context) (sandbox.Mark, error) {
	r, err := c.ask(ctx, reqMark, nil, cancel)
	if err != nil {
		return "", fmt.Errorf("marking processes: %w", err)
	}
	return sandbox.Mark(r.message), nil
}

// KillTree ends everything born since the mark and returns when it is proven
// gone.
func (c *Client) KillTree(ctx context.Context, since sandbox.Mark, grace time.Duration) error {
	if since == everything {
		return errors.New("ending processes: the mark is empty")
	}
	return c.kill(ctx, string(since), grace)
}

// KillAll ends every process but the supervisor, however old, and returns when it is
// proven that none is left.
func (c *Client) KillAll(ctx context.Context, grace time.Duration) error {
	return c.kill(ctx, everything, grace)
}

func (c *Client) kill(ctx context.Context, since string, grace time.Duration) error {
	q := killRequest{mark: since, grace: orDefault(grace)}
	if _, err := c.ask(ctx, reqKillTree, q.encode(), cancel); err != nil {
		return fmt.Errorf("ending processes: %w", err)
	}
	return nil
}

// maxProcessList bounds a list of processes, in bytes: more than a kernel's
// most processes take.
const maxProcessList = 256 << 20

// Processes lists what runs in the sandbox, the supervisor included, as the
// supervisor sees it.
func (c *Client) Processes(ctx context.Context) ([]sandbox.Process, error) {
	k, err := c.begin(ctx, reqProcesses, nil, cancel)
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	defer c.end(k)
	var list []byte
	for {
		f, err := c.next(k)
		if err != nil {
			return nil, fmt.Errorf("listing processes: %w", err)
		}
		if f.Type == repDone {
			var procs []sandbox.Process
			if _, err = c.result(ctx, f); err == nil {
				procs, err = decodeProcesses(list)
			}
			if err != nil {
				return nil, fmt.Errorf("listing processes: %w", err)
			}
			return procs, nil
		}
		if len(list)+len(f.Payload) > maxProcessList {
			return nil, fmt.Errorf("listing processes: more than %d bytes", maxProcessList)
		}
		list = append(list, f.Payload...)
		c.consumed(k, f)
	}
}

func orDefault(grace time.Duration) time.Duration {
	if grace == 0 {
		return sandbox.DefaultGrace
	}
	return grace
}
