package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
	"github.com/proctor-run/proctor/llm/llmtest"
)

// filtered passes pieces through a filter.
func filtered(t *testing.T, pieces ...string) string {
	t.Helper()
	var out bytes.Buffer
	f := wire.NewUsageFilter(&out)
	for _, p := range pieces {
		if n, err := f.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestOnlyTheChunkOfUsageIsFilteredOut(t *testing.T) {
	t.Parallel()
	const usage = `{"choices": [ ], "usage":{"prompt_tokens":1}}`
	for _, c := range []struct{ name, text, want string }{
		{"OpenAI", openaiStream, openaiStream[:strings.LastIndex(openaiStream, "data: {")] + "data: [DONE]\n\n"},
		{"OpenRouter", openrouterStream, openrouterStream},
		{"vLLM", vllmStream, vllmStream[:strings.LastIndex(vllmStream, "data: {")] + "data: [DONE]\n\n"},
		{"carriage returns", "data: 1\r\r: c\rdata: " + usage + "\r\rdata: 2\r\r", "data: 1\r\rdata: 2\r\r"},
		{"both", "data: 1\r\n\r\ndata: " + usage + "\r\n\r\ndata: 2\r\n\r\n", "data: 1\r\n\r\ndata: 2\r\n\r\n"},
		{"mixed", "data: 1\n\r\ndata: " + usage + "\n\r\n\n\rdata: 2\r\n\r", "data: 1\n\r\n\n\rdata: 2\r\n\r"},
		{"several lines", "id: 1\ndata:{\"choices\":null,\ndata: \"usage\":{}}\n\n", ""},
		{"at the end", "data: " + usage, ""},
		{"not whole", "data: " + usage[:40], "data: " + usage[:40]},
		{"no usage", "data: {\"choices\":[],\"usage\":null}\n\n", "data: {\"choices\":[],\"usage\":null}\n\n"},
		{"no choices", "data: {\"usage\":{}}\n\n", "data: {\"usage\":{}}\n\n"},
		{"a choice", "data: {\"choices\":[{}],\"usage\":{}}\n\n", "data: {\"choices\":[{}],\"usage\":{}}\n\n"},
		{"an error", "data: {\"choices\":[],\"usage\":{},\"error\":{\"code\":1}}\n\n", "data: {\"choices\":[],\"usage\":{},\"error\":{\"code\":1}}\n\n"},
		{"called an error", "event: error\ndata: " + usage + "\n\n", "event: error\ndata: " + usage + "\n\n"},
		{"no JSON", "data: {\"choices\":[] \"usage\":{}}\n\n", "data: {\"choices\":[] \"usage\":{}}\n\n"},
		{"no stream", `{"choices":[],"usage":{"a":1}}`, `{"choices":[],"usage":{"a":1}}`},
		{"nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for cut := range len(c.text) + 1 {
				if got := filtered(t, c.text[:cut], c.text[cut:]); got != c.want {
					t.Fatalf("cut at %d: %q", cut, got)
				}
			}
			if got := filtered(t, strings.Split(c.text, "")...); got != c.want {
				t.Errorf("byte by byte: %q", got)
			}
		})
	}
}

// An agent that did not ask sees what it would have seen without the question.
func TestFilteredStreamIsTheOneThatWasAskedFor(t *testing.T) {
	t.Parallel()
	turn := llmtest.Turn{Text: "one two", Calls: []llm.ToolCall{{Name: "f"}}}
	const body = `{"model":"m","stream":true,"messages":[]}`
	edited, asked, err := askForUsage([]byte(body))
	if err != nil || !asked {
		t.Fatal(asked, err)
	}
	r := request{api: llm.Chat, path: "/v1/chat/completions", body: body}
	want, _, _ := fetch(t, r, turn)
	r.body = string(edited)
	answer, contentType, used := fetch(t, r, turn)
	if got := filtered(t, answer); got != want || got == answer {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := tallied(t, llm.Chat, contentType, answer); got.Usage == nil || *got.Usage != used {
		t.Errorf("%s, not %+v", show(got), used)
	}
}

// writes keeps what each Write brought.
type writes struct{ all []string }

func (w *writes) Write(p []byte) (int, error) {
	w.all = append(w.all, string(p))
	return len(p), nil
}

func TestEventsPassWhenTheyAreWhole(t *testing.T) {
	t.Parallel()
	w := &writes{}
	f := wire.NewUsageFilter(w)
	for _, step := range []struct{ write, passed string }{
		{"data: a\n", ""},
		{"\n", "data: a\n\n"},
		{": ping\n\ndata: b\r\n\r", ": ping\n\ndata: b\r\n\r"},
		{"\nda", "\n"},
		{"ta: c\n\ndata: d\n\ndata", "data: c\n\ndata: d\n\n"},
		{": " + strings.Repeat("x", 1<<20), "data: " + strings.Repeat("x", 1<<20)},
		{"y", "y"},
		{"\n\nz", "\n\n"},
	} {
		w.all = nil
		if _, err := f.Write([]byte(step.write)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(w.all, ""); got != step.passed || len(w.all) > 1 {
			t.Errorf("%.20q passed %.40q in %d writes", step.write, got, len(w.all))
		}
	}
	w.all = nil
	if err := f.Flush(); err != nil || len(w.all) != 1 || w.all[0] != "z" {
		t.Errorf("Flush passed %q, %v", w.all, err)
	}
}

func TestLongEventsPassUnread(t *testing.T) {
	t.Parallel()
	text := `data: {"choices":[],"usage":{"x":"` + strings.Repeat("x", 1<<20) + "\"}}\n\ndata: {\"choices\":[],\"usage\":{}}\n\ndata: 1\n\n"
	want := strings.Replace(text, "data: {\"choices\":[],\"usage\":{}}\n\n", "", 1)
	for _, size := range []int{len(text), 4000} {
		if got := filtered(t, pieces(text, size)...); got != want {
			t.Errorf("in pieces of %d: %d bytes, want %d", size, len(got), len(want))
		}
	}
}

func TestFilterEndsWithItsWriter(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	gone := errors.New("gone")
	_ = r.CloseWithError(gone)
	f := wire.NewUsageFilter(w)
	if n, err := f.Write([]byte("data: a")); n != 7 || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
	if _, err := f.Write([]byte("\n\n")); !errors.Is(err, gone) {
		t.Error(err)
	}
	if _, err := f.Write([]byte("data: b\n\n")); !errors.Is(err, gone) {
		t.Error(err)
	}
	if err := f.Flush(); !errors.Is(err, gone) {
		t.Error(err)
	}
}

// plainlyFiltered is what a filter is to pass on, found in the plainest way.
func plainlyFiltered(text string) string {
	out, event, data := "", "", []string{}
	failed := false
	end := func() {
		if failed || !strings.Contains(event, `"usage"`) || !isUsage(strings.Join(data, "\n")) {
			out += event
		}
		event, data, failed = "", nil, false
	}
	for text != "" {
		n := strings.IndexAny(text, "\r\n")
		line, size := text, len(text)
		if n >= 0 {
			line, size = text[:n], n+1
			if strings.HasPrefix(text[n:], "\r\n") {
				size++
			}
		}
		event, text = event+text[:size], text[size:]
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			end()
		case name == "data":
			data = append(data, value)
		case name == "event":
			failed = value == "error"
		case name == "error":
			failed = true
		}
	}
	end()
	return out
}

func isUsage(data string) bool {
	var m map[string]json.RawMessage
	var choices []json.RawMessage
	var usage map[string]json.RawMessage
	if json.Unmarshal([]byte(data), &m) != nil || m["choices"] == nil {
		return false
	}
	switch string(m["error"]) {
	case "", "null", "false", `""`, "{}", "[]":
	default:
		return false
	}
	return json.Unmarshal(m["choices"], &choices) == nil && len(choices) == 0 &&
		json.Unmarshal(m["usage"], &usage) == nil && usage != nil
}

// What passes is the stream without whole events that have only the usage.
func FuzzUsageFilter(f *testing.F) {
	for _, c := range append(answers(), failures()...) {
		f.Add(c.text, uint16(5))
	}
	f.Add("data: {\"choices\":[],\"usage\":{}}\r\n\r\ndata: x\n\n", uint16(0))
	f.Add("data: {\"choices\":[],\rdata:\"usage\":{}}\n\r\n\rdata: x", uint16(1))
	f.Fuzz(func(t *testing.T, text string, size uint16) {
		want := plainlyFiltered(text)
		if got := filtered(t, text); got != want {
			t.Errorf("%q became %q, not %q", text, got, want)
		}
		if got := filtered(t, pieces(text, int(size)+1)...); got != want {
			t.Errorf("in pieces %q became %q, not %q", text, got, want)
		}
	})
}
