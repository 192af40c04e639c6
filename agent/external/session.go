package external

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/sandbox"
)

const (
	// maxUnderWay is how many requests are carried out at once; further ones wait.
	maxUnderWay = 16
	// maxMalformed is how many messages may be none that there are before the agent is
	// given up.
	maxMalformed = 32
	// maxTimeout is the longest that a command may ask for, in seconds; less than a
	// duration can hold.
	maxTimeout = 30 * 24 * 3600

	// Sums over any number of trials stay exact in a double.
	maxTokens  = 1 << 40
	maxCostUSD = 1 << 30
)

// request is a message of the command.
type request struct {
	ID   json.RawMessage `json:"id"`
	Type string          `json:"type"`

	Command    string            `json:"command"`
	Cwd        string            `json:"cwd"`
	Env        map[string]string `json:"env"`
	TimeoutSec *float64          `json:"timeout_sec"`

	Path          string  `json:"path"`
	Content       *string `json:"content"`
	ContentBase64 *string `json:"content_base64"`
	Mode          string  `json:"mode"`

	InputTokens  *int64   `json:"input_tokens"`
	CachedTokens *int64   `json:"cached_tokens"`
	OutputTokens *int64   `json:"output_tokens"`
	CostUSD      *float64 `json:"cost_usd"`
}

// session is one run of the command.
type session struct {
	ctx     context.Context
	cancel  context.CancelFunc
	box     box
	health  health
	workdir string
	log     *journal

	slots    chan struct{}
	handlers sync.WaitGroup // begun by the goroutine that reads
	answers  chan []byte
	stopped  chan struct{} // the command is to end

	mu        sync.Mutex // guards what follows
	malformed int
	isDone    bool
	failure   error
	used      agent.Result
}

func newSession(ctx context.Context, b box, workdir string, log *journal) *session {
	s := &session{box: b, workdir: workdir, log: log, slots: make(chan struct{}, maxUnderWay), answers: make(chan []byte, 1), stopped: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

func (s *session) close() { s.cancel() }

// begin sends the first message. Nothing that the command prints must have been read.
func (s *session) begin(stdin io.Writer, start message) {
	line := encode(start)
	s.log.add(fromProctor, line)
	s.answers <- line
	go func() {
		for {
			select {
			case line := <-s.answers:
				_, _ = stdin.Write(line) // a command need not read
			case <-s.ctx.Done():
				return
			}
		}
	}()
}

func (s *session) send(m message) {
	line := encode(m)
	s.log.add(fromProctor, line)
	select {
	case s.answers <- line:
	case <-s.ctx.Done():
	}
}

func (s *session) splitter() io.Writer {
	return &splitter{each: s.receive, long: func() {
		s.log.tooLong(fromAgent)
		s.complain(nil, fmt.Sprintf("a line has at most %d bytes", maxLine))
	}}
}

// receive takes a message of the command.
func (s *session) receive(line []byte) {
	if s.over() {
		return
	}
	s.log.add(fromAgent, line)
	r, err := parseRequest(line)
	if err != nil {
		s.complain(r.ID, err.Error())
		return
	}
	switch r.Type {
	case "done":
		s.stop(func() { s.isDone = true })
	case "usage":
		if err := s.use(r); err != nil {
			s.complain(r.ID, err.Error())
		}
	default:
		select {
		case s.slots <- struct{}{}:
		case <-s.ctx.Done():
			return
		}
		s.handlers.Go(func() {
			defer func() { <-s.slots }()
			s.handle(r)
		})
	}
}

// maxID is the length of the longest id, in bytes.
const maxID = 200

// parseRequest reads a message; where it is none that there is, the result has the id
// alone, if there is one.
func parseRequest(line []byte) (request, error) {
	var r request
	err := json.Unmarshal(line, &r)
	r.ID = usableID(r.ID)
	refuse := func(why string) (request, error) { return request{ID: r.ID}, errors.New(why) }
	if err != nil {
		return refuse("this is not a message: " + err.Error())
	}
	switch r.Type {
	case "done", "usage":
		return r, nil
	case "exec", "read", "write":
	default:
		return refuse(`the type of a message is one of "exec", "read", "write", "usage" and "done"`)
	}
	switch {
	case r.ID == nil:
		return refuse("the message needs an id, a number or text")
	case r.Type == "exec" && strings.TrimSpace(r.Command) == "":
		return refuse("the message lacks the command")
	case r.Type == "write" && (r.Content == nil) == (r.ContentBase64 == nil):
		return refuse("the message needs either content or content_base64")
	}
	return r, nil
}

// usableID is an id that is a number or text and short, else nil.
func usableID(id json.RawMessage) json.RawMessage {
	id = bytes.TrimSpace(id)
	if len(id) == 0 || len(id) > maxID || id[0] != '"' && id[0] != '-' && (id[0] < '0' || id[0] > '9') {
		return nil
	}
	return id
}

// handle carries out a request and answers it.
func (s *session) handle(r request) {
	answer, err := s.answer(r)
	if s.health.note(s.ctx, err) {
		s.fail(err)
	}
	if err != nil {
		answer = message{"type": "error", "message": err.Error()}
	}
	answer["id"] = r.ID
	s.send(answer)
}

func (s *session) answer(r request) (message, error) {
	switch r.Type {
	case "exec":
		return s.exec(r)
	case "read":
		data, err := s.box.read(s.ctx, r.Path)
		if err != nil {
			return nil, err
		}
		if utf8.Valid(data) {
			return message{"type": "content", "content": string(data)}, nil
		}
		return message{"type": "content", "content_base64": data}, nil
	}
	var content []byte
	if r.Content != nil {
		content = []byte(*r.Content)
	} else {
		var err error
		if content, err = base64.StdEncoding.DecodeString(*r.ContentBase64); err != nil {
			return nil, refusedf("content_base64: %v", err)
		}
	}
	return message{"type": "written"}, s.box.write(s.ctx, r.Path, content, r.Mode)
}

func (s *session) exec(r request) (message, error) {
	cmd := sandbox.Command{Shell: r.Command, Dir: r.Cwd}
	if r.Cwd != "" && !path.IsAbs(r.Cwd) {
		cmd.Dir = path.Join("/", s.workdir, r.Cwd)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		if name == "" || strings.ContainsRune(name, '=') {
			return nil, refusedf("%.100q is not the name of a variable", name)
		}
		cmd.Env = append(cmd.Env, name+"="+r.Env[name])
	}
	if t := r.TimeoutSec; t != nil {
		if !(*t > 0 && *t <= maxTimeout) {
			return nil, refusedf("timeout_sec is %v, want more than 0 and at most %d", *t, maxTimeout)
		}
		cmd.Timeout = max(time.Duration(*t*float64(time.Second)), 1)
	}
	status, out, err := s.box.exec(s.ctx, cmd)
	if err != nil {
		return nil, err
	}
	return message{"type": "result", "exit_code": status.Code, "output": out, "timed_out": status.TimedOut}, nil
}

// use adds what the command says that it used.
func (s *session) use(r request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.used
	for _, c := range []struct {
		name  string
		add   *int64
		total **int64
	}{
		{"input_tokens", r.InputTokens, &next.InputTokens}, {"cached_tokens", r.CachedTokens, &next.CacheTokens}, {"output_tokens", r.OutputTokens, &next.OutputTokens},
	} {
		if c.add == nil {
			continue
		}
		if *c.add < 0 || *c.add > maxTokens {
			return fmt.Errorf("%s is %d, want a number from 0 to %d", c.name, *c.add, int64(maxTokens))
		}
		sum := *c.add
		if *c.total != nil {
			sum += **c.total
		}
		*c.total = new(min(sum, maxTokens))
	}
	if c := r.CostUSD; c != nil {
		if !(*c >= 0 && *c <= maxCostUSD) {
			return fmt.Errorf("cost_usd is %v, want a number from 0 to %d", *c, int64(maxCostUSD))
		}
		sum := *c
		if next.CostUSD != nil {
			sum += *next.CostUSD
		}
		next.CostUSD = new(math.Min(sum, maxCostUSD))
	}
	s.used = next
	return nil
}

// complain answers what is no message that there is. After a number of them the agent is
// given up.
func (s *session) complain(id json.RawMessage, why string) {
	s.mu.Lock()
	s.malformed++
	last := s.malformed == maxMalformed
	s.mu.Unlock()
	if last {
		s.fail(protocolErrorf("the agent's command sent %d messages that are none; the last one: %s", maxMalformed, why))
		return
	}
	m := message{"type": "error", "message": why}
	if id != nil {
		m["id"] = id
	}
	s.send(m)
}

// fail gives the agent up.
func (s *session) fail(err error) {
	s.stop(func() { s.failure = err })
}

// stop ends the command. The first reason counts.
func (s *session) stop(note func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isDone || s.failure != nil {
		return
	}
	note()
	close(s.stopped)
}

// over reports whether the command is to end.
func (s *session) over() bool {
	select {
	case <-s.stopped:
		return true
	default:
		return s.ctx.Err() != nil
	}
}

func (s *session) done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isDone
}

func (s *session) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

func (s *session) result() agent.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}
