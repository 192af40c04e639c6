package llmtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/proctor-run/proctor/llm"
)

// ScriptFile says what a [Server] answers, in JSON:
//
//	{
//	  "rules": [
//	    {"last_contains": "tests passed", "answer": {"text": "Done."}},
//	    {"tool": "bash", "turn": 0, "answer": {"calls": [{"name": "bash", "arguments": {"command": "ls"}}]}}
//	  ],
//	  "turns": [{"text": "first"}, {"text": "second", "faults": [{"status": 500}]}],
//	  "otherwise": {"text": "I do not know."}
//	}
//
// The first rule whose every condition holds answers. Where none does, turns answers: the
// n-th one a conversation that has n answers already. What is left is for otherwise; without
// it the request is refused. See [Rule] and [FileAnswer] for the members.
type ScriptFile struct {
	Rules     []Rule       `json:"rules"`
	Turns     []FileAnswer `json:"turns"`
	Otherwise *FileAnswer  `json:"otherwise"`
}

// Rule is an answer with its conditions. Those that are absent hold.
type Rule struct {
	// LastContains is in the text of the last message, AnyContains in that of some message.
	LastContains string `json:"last_contains"`
	AnyContains  string `json:"any_contains"`
	// Turn is how many answers the conversation has.
	Turn *int `json:"turn"`
	// Model is in the name of the model; Tool is the name of a tool that is offered, in which
	// "*" stands for anything.
	Model string `json:"model"`
	Tool  string `json:"tool"`

	Answer FileAnswer `json:"answer"`
}

// FileAnswer is an answer.
type FileAnswer struct {
	Text      string     `json:"text"`
	Reasoning string     `json:"reasoning"`
	Signature string     `json:"signature"`
	Calls     []FileCall `json:"calls"`
	Finish    llm.Finish `json:"finish"`
	Cost      *float64   `json:"cost"`
	Usage     *struct {
		Prompt     int64 `json:"prompt"`
		Completion int64 `json:"completion"`
		Cached     int64 `json:"cached"`
		CacheWrite int64 `json:"cache_write"`
	} `json:"usage"`
	// Faults go wrong before the answer comes, one for each time that the same request is
	// made. Equal requests of different conversations count as the same.
	Faults []Fault `json:"faults"`
}

// FileCall is the use of a tool. In Name "*" stands for anything: the first tool that is
// offered counts. Arguments is an object, or a text that is sent as it is.
type FileCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// ParseScript reads a script.
func ParseScript(data []byte) (*ScriptFile, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	s := &ScriptFile{}
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("reading the script: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("reading the script: there is something after its end")
	}
	return s, nil
}

// Answer is the turn that answers a request.
func (s *ScriptFile) Answer(req *Request) Turn {
	for i := range s.Rules {
		if s.Rules[i].holds(req) {
			return s.Rules[i].Answer.turn(req)
		}
	}
	switch {
	case req.Turn < len(s.Turns):
		return s.Turns[req.Turn].turn(req)
	case s.Otherwise != nil:
		return s.Otherwise.turn(req)
	}
	return Turn{Fault: &Fault{
		Status:  http.StatusBadRequest,
		Message: fmt.Sprintf("the script has no answer for turn %d of this conversation", req.Turn),
	}}
}

func (r *Rule) holds(req *Request) bool {
	if r.Turn != nil && *r.Turn != req.Turn || !strings.Contains(req.Model, r.Model) || !strings.Contains(req.Last(), r.LastContains) {
		return false
	}
	found := r.AnyContains == ""
	for i := range req.Messages {
		found = found || strings.Contains(req.Messages[i].Text(), r.AnyContains)
	}
	return found && (r.Tool == "" || offered(req, r.Tool) != "")
}

// offered is the first tool of a request that a glob matches; empty for none.
func offered(req *Request, glob string) string {
	for _, t := range req.Tools {
		if ok, err := path.Match(glob, t); ok && err == nil {
			return t
		}
	}
	return ""
}

func (a *FileAnswer) turn(req *Request) Turn {
	t := Turn{Text: a.Text, Reasoning: a.Reasoning, Signature: a.Signature, Finish: a.Finish, Cost: a.Cost}
	if a.Usage != nil {
		t.Usage = &llm.Usage{Prompt: a.Usage.Prompt, Completion: a.Usage.Completion, Cached: a.Usage.Cached, CacheWrite: a.Usage.CacheWrite}
	}
	for _, c := range a.Calls {
		arguments := string(c.Arguments)
		var text string
		if json.Unmarshal(c.Arguments, &text) == nil {
			arguments = text
		}
		name := c.Name
		if strings.Contains(name, "*") {
			name = cmp.Or(offered(req, name), name)
		}
		t.Calls = append(t.Calls, llm.ToolCall{ID: c.ID, Name: name, Arguments: arguments})
	}
	if req.Attempt < len(a.Faults) {
		fault := a.Faults[req.Attempt]
		t.Fault = &fault
	}
	return t
}
