package llmtest

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
)

// maxRequest bounds the body of a request.
const maxRequest = 64 << 20

// Server is a server of models that has none. It speaks the protocols of package llm,
// whole or as a stream, and answers as Answer says:
//
//	POST …/chat/completions
//	POST …/responses
//	POST …/messages and …/messages/count_tokens
//	POST …/models/M:generateContent, :streamGenerateContent and :countTokens
//	GET  …/models
//
// Clients that ask whether it is there (HEAD) are told so, and those that would speak
// responses over a WebSocket that it does not. It counts what it was asked and what it answered.
type Server struct {
	// Answer gives the turn that answers a request. It may be called at the same time by
	// several requests.
	Answer func(*Request) Turn
	// Key must come with every request; empty for any key, or none.
	Key string
	// Forget keeps no requests, for servers that run long.
	Forget bool

	mu       sync.Mutex
	number   int
	requests []*Request
	counts   map[Account]Count
	attempts map[[sha256.Size]byte]int // by key and body
	chains   map[string]int            // turns that lead up to a response, by its id
}

// Account is who asked for which model.
type Account struct{ Model, Key string }

// Count is what an account used.
type Count struct {
	// Requests are all of them, Answers those that were answered whole.
	Requests, Answers int
	// Usage is what the answers told.
	Usage llm.Usage
}

// Request is what the server was asked.
type Request struct {
	API      llm.API
	Model    string
	Key      string
	Stream   bool
	Messages []llm.Message
	// Tools are the names of the tools that may be called.
	Tools []string
	// Turn is how many answers of a model the conversation has already.
	Turn int
	// Attempt is how many equal requests came before.
	Attempt int
	// Path, Header and Body are those of the request.
	Path   string
	Header http.Header
	Body   []byte

	previous     string // the response that is continued
	includeUsage bool
	number       int // of the request, for ids
}

// Last is the text of the last message.
func (r *Request) Last() string {
	if len(r.Messages) == 0 {
		return ""
	}
	return r.Messages[len(r.Messages)-1].Text()
}

// Turn is an answer.
type Turn struct {
	Text, Reasoning string
	Calls           []llm.ToolCall
	// Finish is why it ends; empty for what the rest implies.
	Finish llm.Finish
	// Usage is what it says was used; nil for a token for four bytes of text.
	Usage *llm.Usage
	// Cost is in US dollars, for the protocols in which servers tell; nil for nothing.
	Cost *float64
	// LogProbs, and token ids, are given where they are asked for.
	LogProbs                           []float64
	PromptTokenIDs, CompletionTokenIDs []int64
	// Signature signs the reasoning in the protocols that do.
	Signature string
	// Fault is what goes wrong instead; nil for nothing.
	Fault *Fault
}

// Requests returns what was asked, in order of arrival.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Request(nil), s.requests...)
}

// Counts returns what was used.
func (s *Server) Counts() map[Account]Count {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[Account]Count{}
	for a, c := range s.counts {
		out[a] = c
	}
	return out
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return
	}
	d := dialectOf(r.URL.Path)
	if d == nil {
		http.Error(w, "there is nothing here", http.StatusNotFound)
		return
	}
	body, err := bounded.Read(r.Body, maxRequest)
	if err != nil {
		d.fail(w, &Fault{Status: http.StatusRequestEntityTooLarge, Message: err.Error()})
		return
	}
	req := &Request{Path: r.URL.Path, Header: r.Header.Clone(), Body: body, API: d.api(), Key: keyOf(r)}
	if s.Key != "" && req.Key != s.Key {
		d.fail(w, &Fault{Kind: Auth})
		return
	}
	if r.Method == http.MethodGet {
		get(w, d)
		return
	}
	if err := d.parse(req); err != nil {
		d.fail(w, &Fault{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	if strings.HasSuffix(req.Path, "count_tokens") || strings.HasSuffix(req.Path, ":countTokens") {
		n := promptTokens(req)
		send(w, map[string]any{"input_tokens": n, "totalTokens": n})
		return
	}
	s.count(req)
	turn := s.Answer(req)
	if !turn.Fault.wait(r.Context()) {
		panic(http.ErrAbortHandler)
	}
	if turn.Fault != nil && turn.Fault.Kind != Cut && turn.Fault.Kind != Wait {
		d.fail(w, turn.Fault)
		return
	}
	s.answer(w, r, d, req, &turn)
}

// get answers what is only looked at.
func get(w http.ResponseWriter, d dialect) {
	switch d.api() {
	case llm.Chat:
		send(w, map[string]any{"object": "list", "data": []any{}, "models": []any{}})
	case llm.Responses:
		d.fail(w, &Fault{Status: http.StatusUpgradeRequired, Message: "responses are spoken over HTTP alone"})
	default:
		d.fail(w, &Fault{Status: http.StatusMethodNotAllowed})
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, d dialect, req *Request, turn *Turn) {
	a := complete(req, turn)
	cut := turn.Fault != nil && turn.Fault.Kind == Cut
	if !cut {
		s.settle(req, a)
	}
	if req.Stream {
		array := req.API == llm.Gemini && r.URL.Query().Get("alt") != "sse"
		stream(w, d.events(req, a), cut, array)
		return
	}
	data, err := wire.JSON(d.whole(req, a))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	if cut {
		data = data[:len(data)/2]
	}
	//nolint:errcheck // the client may have gone
	w.Write(data)
	if cut {
		panic(http.ErrAbortHandler)
	}
}

// count takes a request down.
func (s *Server) count(req *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts, s.attempts, s.chains = map[Account]Count{}, map[[sha256.Size]byte]int{}, map[string]int{}
	}
	if !s.Forget {
		s.requests = append(s.requests, req)
	}
	s.number++
	req.number = s.number
	same := sha256.Sum256(slices.Concat([]byte(req.Key+"\x00"+req.Path+"\x00"), req.Body))
	req.Attempt = s.attempts[same]
	s.attempts[same]++
	req.Turn = s.chains[req.previous]
	for _, m := range req.Messages {
		if m.Role == llm.Assistant {
			req.Turn++
		}
	}
	c := s.counts[Account{req.Model, req.Key}]
	c.Requests++
	s.counts[Account{req.Model, req.Key}] = c
}

// settle counts an answer.
func (s *Server) settle(req *Request, a *full) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts[Account{req.Model, req.Key}]
	c.Answers++
	c.Usage.Prompt += a.usage.Prompt
	c.Usage.Completion += a.usage.Completion
	c.Usage.Cached += a.usage.Cached
	c.Usage.CacheWrite += a.usage.CacheWrite
	s.counts[Account{req.Model, req.Key}] = c
	s.chains[a.id] = req.Turn + 1
}

// full is a turn with everything that it leaves to be implied.
type full struct {
	*Turn
	id     string
	usage  llm.Usage
	finish llm.Finish
	calls  []llm.ToolCall
}

func complete(req *Request, turn *Turn) *full {
	a := &full{Turn: turn, id: fmt.Sprintf("answer-%d", req.number), finish: turn.Finish}
	for i, c := range turn.Calls {
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d_%d", req.number, i+1)
		}
		if c.Arguments == "" {
			c.Arguments = "{}"
		}
		a.calls = append(a.calls, c)
	}
	switch {
	case a.finish != "":
	case len(a.calls) > 0:
		a.finish = llm.CallsMade
	default:
		a.finish = llm.Stopped
	}
	if turn.Usage != nil {
		a.usage = *turn.Usage
		return a
	}
	n := len(turn.Text) + len(turn.Reasoning)
	for _, c := range a.calls {
		n += len(c.Name) + len(c.Arguments)
	}
	a.usage = llm.Usage{Prompt: promptTokens(req), Completion: tokens(n)}
	return a
}

func promptTokens(req *Request) int64 {
	n := 0
	for i := range req.Messages {
		n += len(req.Messages[i].Text())
		for _, c := range req.Messages[i].Calls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	return tokens(n)
}

// tokens is about how many tokens a text of n bytes has.
func tokens(n int) int64 { return int64(n+3) / 4 }

// keyOf is the key of a request, wherever the protocols have it.
func keyOf(r *http.Request) string {
	if key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return key
	}
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key"} {
		if key := r.Header.Get(name); key != "" {
			return key
		}
	}
	return r.URL.Query().Get("key")
}

func send(w http.ResponseWriter, v any) {
	data, err := wire.JSON(v)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	//nolint:errcheck // the client may have gone
	w.Write(data)
}

// event is one of a stream.
type event struct {
	name string // empty for none
	data any
}

// stream sends events as they are sent to browsers or, where array says so, as the list
// that Gemini makes of them. A cut ends it in the middle.
func stream(w http.ResponseWriter, events []event, cut, array bool) {
	if cut {
		events = events[:(len(events)+1)/2]
	}
	if array {
		list := make([]any, len(events))
		for i, e := range events {
			list[i] = e.data
		}
		send(w, list)
	} else {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			sendEvent(w, e)
		}
	}
	if cut {
		panic(http.ErrAbortHandler)
	}
}

func sendEvent(w http.ResponseWriter, e event) {
	text, ok := e.data.(string)
	if !ok {
		data, err := wire.JSON(e.data)
		if err != nil {
			return
		}
		text = string(data)
	}
	if e.name != "" {
		text = "event: " + e.name + "\ndata: " + text + "\n\n"
	} else {
		text = "data: " + text + "\n\n"
	}
	//nolint:errcheck // the client may have gone
	w.Write([]byte(text))
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}
