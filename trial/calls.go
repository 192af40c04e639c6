package trial

import (
	"errors"
	"os"
	"sync"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
)

// modelCalls opens the models of a trial's agent, those of the runner or of a recording,
// and keeps what they answer.
type modelCalls struct {
	llm.Recorder
	file callFile

	mu     sync.Mutex
	replay *llm.Replay // nil while there is none
}

// models opens the models of the trial's agent; nil where the runner has none.
func (a *attempt) models() llm.Opener {
	if a.r.Models == nil && a.r.Replay == nil {
		return nil
	}
	c := &modelCalls{file: callFile{dir: a.hostDir("agent")}}
	c.Opener, c.To, c.Limit = a.metered(), &c.file, min(a.r.outputLimit(), jobdir.MaxModelCalls)
	c.Redact, c.Now = a.veil.bytes, a.now
	if a.r.Replay != nil {
		c.Opener = llm.OpenerFunc(func(name string, o llm.Options) (llm.Model, error) { return c.replayed(a, name, o) })
	}
	a.calls = c
	return c
}

// replayed opens a model of the trial's recording. Only agents that open one take it.
func (c *modelCalls) replayed(a *attempt, name string, o llm.Options) (llm.Model, error) {
	r, err := c.recording(a)
	if err != nil {
		return nil, err
	}
	return r.Open(name, o) //nolint:wrapcheck // the recording's own words
}

// recording is the trial's, which is asked for once.
func (c *modelCalls) recording(a *attempt) (*llm.Replay, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.replay == nil {
		r, err := a.r.Replay(a.cfg)
		if err != nil {
			return nil, err
		}
		r.Redact = a.veil.bytes
		c.replay = r
	}
	return c.replay, nil
}

// closeCalls closes the recording, and tells of what it does not have and of what was not
// as in the one that was replayed.
func (a *attempt) closeCalls() {
	if a.calls == nil {
		return
	}
	if err := a.calls.file.close(); err != nil {
		a.warn("keeping the calls of the model: %v", err)
	}
	a.calls.mu.Lock()
	defer a.calls.mu.Unlock()
	if r := a.calls.replay; r != nil {
		a.notes.ReplayedFrom = r.Name
		if what := r.Diverged(); what != "" {
			a.warn("the replay differs from what was recorded: %s; it went on with the recorded answers", what)
		}
	}
}

// callFile is the file of the recording in the agent's directory. After a step, whose
// files are moved away, it goes on in a new one. It may be written to by several
// goroutines, also by an agent that was left to itself.
type callFile struct {
	dir string

	mu     sync.Mutex
	f      *os.File // nil before the first line, and after each step
	closed bool
	err    error
}

var errCallsClosed = errors.New("the trial has ended")

// Write writes a line.
func (c *callFile) Write(line []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, errCallsClosed
	}
	if c.f == nil && c.err == nil {
		c.f, c.err = bounded.Truncate(c.dir, jobdir.ModelCallsFile)
	}
	if c.err != nil {
		return 0, c.err
	}
	n := 0
	n, c.err = c.f.Write(line)
	return n, c.err
}

// endStep closes the file of a step.
func (c *callFile) endStep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.f != nil {
		c.err = errors.Join(c.err, c.f.Close())
		c.f = nil
	}
}

func (c *callFile) close() error {
	c.endStep()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.err
}
