package llm_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
)

const chatPath = "/chat/completions"

// passed is an exchange with a request and the text of an answer.
func passed(request, answer string) *llm.Exchange {
	return &llm.Exchange{
		Model: "test/m", API: llm.Chat, Path: chatPath, Request: []byte(request),
		Status: 200, ContentType: "application/json", Body: []byte(answer),
	}
}

// recordExchanges makes a recording of these.
func recordExchanges(r *llm.Recorder, list ...*llm.Exchange) []byte {
	var out bytes.Buffer
	r.To = &out
	for _, x := range list {
		r.Exchange(x, llm.Info{Name: x.Model, InputLimit: 7}, 1500*time.Millisecond)
	}
	return out.Bytes()
}

// sameAnswer reports whether an exchange that was replayed is one that was recorded.
func sameAnswer(got, want *llm.Exchange) bool {
	if got == nil || got.Request != nil || !bytes.Equal(got.Body, want.Body) {
		return false
	}
	w, g := *want, *got
	w.Request, w.Body, g.Body = nil, nil, nil
	return reflect.DeepEqual(g, w)
}

// exchangeLine is the line of a call as it stands in a recording.
type exchangeLine struct {
	Call     int64
	Request  string
	Duration int64 `json:"duration_ms"`
	Exchange struct {
		Body string
		Gzip []byte
	}
	Error map[string]any
}

func linesOf(t *testing.T, recording []byte) []exchangeLine {
	t.Helper()
	var list []exchangeLine
	for text := range bytes.Lines(recording) {
		var l exchangeLine
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		if l.Call > 0 {
			list = append(list, l)
		}
	}
	return list
}

func unzip(t *testing.T, data []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func zip(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func drawExchange(t *rapid.T) *llm.Exchange {
	x := &llm.Exchange{
		Model:   rapid.SampledFrom([]string{"test/m", "other/n"}).Draw(t, "model"),
		API:     rapid.SampledFrom([]llm.API{llm.Chat, llm.Responses, llm.Anthropic, llm.Gemini}).Draw(t, "api"),
		Path:    rapid.SampledFrom([]string{chatPath, "/models/é:x?alt=sse", "/models/é:x"}).Draw(t, "path"),
		Request: []byte(drawText(t, "request")),
	}
	if rapid.IntRange(0, 5).Draw(t, "outcome") == 0 {
		x.Err = &llm.Error{Kind: llm.Transient, Model: x.Model, Message: drawText(t, "message")}
		return x
	}
	x.Status = rapid.IntRange(200, 999).Draw(t, "status")
	x.ContentType = rapid.SampledFrom([]string{"", "text/event-stream; charset=utf-8", strings.Repeat("é", 128)}).Draw(t, "type")
	x.Body = rapid.OneOf(
		rapid.Custom(func(t *rapid.T) []byte { return []byte(drawText(t, "text")) }),
		rapid.SliceOf(rapid.Byte()),
		rapid.Custom(func(t *rapid.T) []byte { return bytes.Repeat([]byte(drawText(t, "event")), 500) }),
	).Draw(t, "body")
	x.Cut = rapid.Bool().Draw(t, "cut")
	x.Usage = draw(t, "usage", func() llm.Usage {
		return llm.Usage{Prompt: rapid.Int64().Draw(t, "prompt"), Completion: 2, CacheWrite: 3}
	})
	x.Cost = draw(t, "cost", func() float64 { return drawFloat(t) })
	return x
}

// TestExchangesRoundTrip: what was recorded is given for the same requests, whatever their
// order, each once; of the same request several times, in the order of the recording.
func TestExchangesRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(drawExchange), 1, 6).Draw(rt, "exchanges")
		data := recordExchanges(&llm.Recorder{}, list...)
		replay := &llm.Replay{Recording: parse(t, data), Name: "one", Strict: true}
		left := append([]*llm.Exchange{}, list...)
		for _, asked := range rapid.Permutation(list).Draw(rt, "order") {
			if info, ok := replay.Known(asked.Model); !ok || info.Name != asked.Model || info.InputLimit != 7 {
				rt.Fatalf("the model is %+v, %v", info, ok)
			}
			var want *llm.Exchange
			for i, x := range left {
				if x.Model == asked.Model && x.API == asked.API && x.Path == asked.Path && bytes.Equal(x.Request, asked.Request) {
					want, left = x, append(left[:i:i], left[i+1:]...)
					break
				}
			}
			got, err := replay.Exchange(asked.Model, asked.API, asked.Path, asked.Request)
			if want.Err != nil && (got != nil || !reflect.DeepEqual(err, want.Err)) || want.Err == nil && (err != nil || !sameAnswer(got, want)) {
				rt.Fatalf("got %+v, %v, want %+v\n%s", got, err, want, data)
			}
		}
		for _, x := range list {
			if _, err := replay.Exchange(x.Model, x.API, x.Path, x.Request); exception.TypeOf(err) != llm.ReplayDivergedError || !strings.Contains(err.Error(), "that is left") {
				rt.Fatalf("beyond the recording: %v", err)
			}
		}
		if replay.Diverged() != "" {
			rt.Fatalf("diverged: %s", replay.Diverged())
		}
	})
}

// TestBodiesOfExchanges: short texts can be read in the file, others are compressed.
func TestBodiesOfExchanges(t *testing.T) {
	t.Parallel()
	event := "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
	for _, c := range []struct {
		name   string
		body   string
		zipped bool
	}{
		{"nothing", "", false},
		{"a short text", event, false},
		{"1 KiB", strings.Repeat("x", 1<<10), false},
		{"more", strings.Repeat("x", 1<<10+1), true},
		{"no text", "\xff", true},
		{"a stream", strings.Repeat(event, 1000), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			data := recordExchanges(&llm.Recorder{}, passed("x", c.body))
			l := linesOf(t, data)[0]
			if l.Call != 1 || l.Duration != 1500 || len(l.Request) != 64 || (l.Exchange.Gzip != nil) != c.zipped || c.zipped == (l.Exchange.Body == c.body) {
				t.Errorf("the line is %+v", l)
			}
			if c.zipped && string(unzip(t, l.Exchange.Gzip)) != c.body {
				t.Error("another body is compressed")
			}
			if len(c.body) > 10_000 && len(data) > len(c.body)/10 {
				t.Errorf("%d bytes are kept of %d", len(data), len(c.body))
			}
		})
	}
}

// TestExchangesHideSecrets: no secret is in the file, compressed or not, and a replay that
// never saw it makes the same requests.
func TestExchangesHideSecrets(t *testing.T) {
	t.Parallel()
	const secret, mark = "sesame-sesame", "[REDACTED:KEY]"
	hide := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(secret), []byte(mark)) }
	large := strings.Repeat("a stream ", 500) + secret + strings.Repeat(" of text", 500)
	withSecrets := func(body string) *llm.Exchange {
		x := passed("tell me "+secret, body)
		x.Path, x.ContentType = chatPath+"?key="+secret, "text/"+secret
		return x
	}
	failed := passed(secret, "")
	failed.Err = &llm.Error{Kind: llm.Auth, Message: "the key was " + secret}
	data := recordExchanges(&llm.Recorder{Redact: hide}, withSecrets("it is "+secret), withSecrets(large), withSecrets("\xff"+secret), failed)
	if bytes.Contains(data, []byte(secret)) {
		t.Errorf("the recording is\n%s", data)
	}
	lines := linesOf(t, data)
	for i, l := range lines {
		plain := []byte(l.Exchange.Body)
		if l.Exchange.Gzip != nil {
			plain = unzip(t, l.Exchange.Gzip)
		}
		if bytes.Contains(plain, []byte(secret)) || i < 3 && !bytes.Contains(plain, []byte(mark)) {
			t.Errorf("the body of call %d is %q", l.Call, plain)
		}
	}
	if lines[1].Exchange.Gzip == nil || lines[2].Exchange.Gzip == nil || !strings.Contains(fmt.Sprint(lines[3].Error), mark) {
		t.Errorf("the lines are %+v", lines)
	}
	replay := &llm.Replay{Recording: parse(t, data), Strict: true, Redact: hide}
	for i, want := range []string{"it is " + mark, strings.ReplaceAll(large, secret, mark)} {
		got, err := replay.Exchange("test/m", llm.Chat, chatPath+"?key="+mark, []byte("tell me "+mark))
		if err != nil || string(got.Body) != want || got.ContentType != "text/"+mark || got.Path != chatPath+"?key="+mark {
			t.Errorf("call %d: %+v, %v", i+1, got, err)
		}
	}
}

// TestExchangesDiverge: another request gets the answer of the first call of the same kind
// that is left, which is told of, or is refused.
func TestExchangesDiverge(t *testing.T) {
	t.Parallel()
	other := passed("one", "of another protocol")
	other.API = llm.Responses
	elsewhere := passed("one", "at another path")
	elsewhere.Path = "/models"
	query := passed("three", "third")
	query.Path += "?beta=true"
	recording := parse(t, recordExchanges(&llm.Recorder{}, other, elsewhere, passed("one", "first"), passed("two", "second"), query))
	ask := func(r *llm.Replay, path, request string) (string, error) {
		x, err := r.Exchange("test/m", llm.Chat, path, []byte(request))
		if err != nil {
			return "", err
		}
		return string(x.Body), nil
	}
	lenient := &llm.Replay{Recording: recording, Name: "late"}
	for _, c := range []struct{ path, request, want, diverged string }{
		{chatPath, "two", "second", ""},
		{chatPath, "new", "first", "call 3 of recording late was made with another request"},
		{chatPath + "?beta=false", "three", "third", "call 3 of recording late was made with another request"},
	} {
		if got, err := ask(lenient, c.path, c.request); err != nil || got != c.want || lenient.Diverged() != c.diverged {
			t.Errorf("%s: got %q, %v, diverged: %q", c.request, got, err, lenient.Diverged())
		}
	}
	strict := &llm.Replay{Recording: recording, Name: "late", Strict: true}
	for _, c := range []struct {
		replay        *llm.Replay
		path, request string
		want          string
	}{
		{lenient, chatPath, "one", `recording late has no call of model test/m to "/chat/completions" that is left`},
		{strict, chatPath, "new", "call 3 of recording late was made with another request"},
		{strict, chatPath + "?beta=false", "one", "call 3 of recording late was made with another request"},
		{strict, strings.Repeat("/", 1000), "one", "that is left"},
	} {
		if _, err := ask(c.replay, c.path, c.request); exception.TypeOf(err) != llm.ReplayDivergedError || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 500 {
			t.Errorf("%s: %v", c.request, err)
		}
	}
	if got, err := ask(strict, chatPath, "one"); err != nil || got != "first" || strict.Diverged() != "" {
		t.Errorf("after refusals: %q, %v, diverged: %q", got, err, strict.Diverged())
	}
	if _, err := strict.Exchange("test/other", llm.Chat, chatPath, nil); exception.TypeOf(err) != llm.ReplayDivergedError || !strings.Contains(err.Error(), "no calls of model test/other") {
		t.Errorf("another model: %v", err)
	}
	if info, known := strict.Known("test/other"); known || info.Name != "" {
		t.Errorf("another model is known as %+v", info)
	}
}

// TestFailedExchanges: a call without an answer fails again as it did; one that nobody
// waited for is passed over where the same was asked for again, and else refused.
func TestFailedExchanges(t *testing.T) {
	t.Parallel()
	failing := func(request string, err error) *llm.Exchange {
		x := passed(request, "not an answer")
		x.Err = err
		return x
	}
	data := recordExchanges(&llm.Recorder{},
		failing("refused", &llm.Error{Kind: llm.RateLimited, Model: "test/m", Status: 429, Message: "later", RetryAfter: time.Second}),
		failing("odd", &llm.Error{Kind: llm.Transient, Model: "test/m", Status: 7}),
		failing("again", fmt.Errorf("asking: %w", context.Canceled)),
		passed("again", "the second time"),
		failing("left", context.DeadlineExceeded),
		passed("more", "of the same path"),
	)
	replay := &llm.Replay{Recording: parse(t, data), Name: "one"}
	exchange := func(request string) (*llm.Exchange, error) {
		return replay.Exchange("test/m", llm.Chat, chatPath, []byte(request))
	}
	_, err := exchange("refused")
	if want := (&llm.Error{Kind: llm.RateLimited, Model: "test/m", Status: 429, Message: "later", RetryAfter: time.Second}); !reflect.DeepEqual(err, error(want)) {
		t.Errorf("got %#v", err)
	}
	if _, err := exchange("odd"); !reflect.DeepEqual(err, error(&llm.Error{Kind: llm.Transient, Model: "test/m"})) {
		t.Errorf("got %#v", err)
	}
	if got, err := exchange("again"); err != nil || string(got.Body) != "the second time" {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, request := range []string{"again", "left"} {
		if _, err := exchange(request); exception.TypeOf(err) != llm.ReplayDivergedError || !strings.Contains(err.Error(), "of recording one was never answered") {
			t.Errorf("%s: %v", request, err)
		}
	}
	if got, err := exchange("another"); err != nil || string(got.Body) != "of the same path" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := exchange("another"); exception.TypeOf(err) != llm.ReplayDivergedError || !strings.Contains(err.Error(), "call 3 of recording one was never answered") {
		t.Errorf("got %v", err)
	}
}

// TestMixedRecordings: calls of models and those that were passed on are in one file, and
// neither is given for the other.
func TestMixedRecordings(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := &llm.Recorder{Opener: always(&llmtest.Script{About: llm.Info{Name: "test/m"}, Answers: []llmtest.Answer{llmtest.Say("a"), llmtest.Say("b")}}), To: &out}
	m := openModel(t, r)
	for i := range 2 {
		r.Exchange(passed(fmt.Sprint("request ", i), fmt.Sprint("answer ", i)), m.Info(), 0)
		if _, err := m.Complete(t.Context(), ask("x")); err != nil {
			t.Fatal(err)
		}
	}
	if bytes.Count(out.Bytes(), []byte("\n")) != 5 {
		t.Errorf("the recording is\n%s", out.Bytes())
	}
	replay := &llm.Replay{Recording: parse(t, out.Bytes()), Name: "both", Strict: true}
	m = openModel(t, replay)
	for _, want := range []string{"a", "b"} {
		if resp, err := m.Complete(t.Context(), ask("x")); err != nil || resp.Message.Text() != want {
			t.Errorf("got %v, %v, want %s", resp, err, want)
		}
	}
	if _, err := m.Complete(t.Context(), ask("x")); err == nil || !strings.Contains(err.Error(), "recording both has no call 5") {
		t.Errorf("beyond the recording: %v", err)
	}
	for _, i := range []int{1, 0} {
		if x, err := replay.Exchange("test/m", llm.Chat, chatPath, fmt.Append(nil, "request ", i)); err != nil || string(x.Body) != fmt.Sprint("answer ", i) {
			t.Errorf("got %+v, %v", x, err)
		}
	}
}

// TestExchangesAtTheSameTime: calls that end at the same time are all recorded, and each is
// replayed once.
func TestExchangesAtTheSameTime(t *testing.T) {
	t.Parallel()
	const callers, calls = 8, 20
	var out bytes.Buffer
	r := &llm.Recorder{Opener: always(&priced{}), To: &out, Redact: bytes.Clone}
	together := func(call func(caller, n int)) {
		var all sync.WaitGroup
		for caller := range callers {
			all.Go(func() {
				for n := range calls {
					call(caller, n)
				}
			})
		}
		all.Wait()
	}
	m := openModel(t, r)
	together(func(caller, n int) {
		r.Exchange(passed(fmt.Sprint(caller), fmt.Sprint(caller, strings.Repeat(" body", 300))), llm.Info{}, 0)
		if _, err := m.Complete(t.Context(), ask("x")); err != nil {
			t.Error(err)
		}
	})
	replay := &llm.Replay{Recording: parse(t, out.Bytes()), Strict: true}
	together(func(caller, n int) {
		x, err := replay.Exchange("test/m", llm.Chat, chatPath, fmt.Append(nil, caller))
		if err != nil || !strings.HasPrefix(string(x.Body), fmt.Sprint(caller, " body")) {
			t.Errorf("caller %d: %+v, %v", caller, x, err)
		}
	})
	if _, err := replay.Exchange("test/m", llm.Chat, chatPath, []byte("0")); err == nil {
		t.Error("a call is left")
	}
}

// TestExchangesThatCannotBeKept: what could not be read again, or would be too much, ends
// the recording, which says so.
func TestExchangesThatCannotBeKept(t *testing.T) {
	t.Parallel()
	status := func(n int) *llm.Exchange {
		x := passed("", "x")
		x.Status = n
		return x
	}
	large := passed("", strings.Repeat("\x00", 64<<20))
	tooLarge := passed("", strings.Repeat("\x00", 64<<20+1))
	for _, c := range []struct {
		name     string
		recorder *llm.Recorder
		list     []*llm.Exchange
		want     string
		lines    int
	}{
		{"no status", &llm.Recorder{}, []*llm.Exchange{status(0)}, "call 1 could not be written down: the status of its answer is 0", 2},
		{"an informational one", &llm.Recorder{}, []*llm.Exchange{status(199)}, "the status of its answer is 199", 2},
		{"one that is none", &llm.Recorder{}, []*llm.Exchange{status(1000)}, "the status of its answer is 1000", 2},
		{"a body that is too long", &llm.Recorder{}, []*llm.Exchange{tooLarge, passed("", "")}, "the body of its answer has more than 67108864 bytes", 2},
		{"one that becomes too long", &llm.Recorder{Redact: func(b []byte) []byte { return bytes.Replace(b, []byte("\x00"), []byte("\x00\x00"), 1) }},
			[]*llm.Exchange{large}, "the body of its answer has more than 67108864 bytes", 2},
		{"bodies that are too long together", (&llm.Recorder{}).HadBodies(256<<20 - 3), []*llm.Exchange{passed("", "x"), passed("", "xy"), passed("", ""), passed("", "x")},
			"call 4 could not be written down: the bodies of all answers have more than 268435456 bytes together", 5},
		{"a limit", &llm.Recorder{Limit: 2000}, []*llm.Exchange{passed("", ""), passed("", string(unlikeBytes(2000)))}, "call 2 would have made it longer than 2000 bytes", 3},
		{"a secret in what is compressed", &llm.Recorder{Redact: func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte(`"gzip":"H4s`), []byte(`"gzip":"[X]`))
		}}, []*llm.Exchange{passed("", "\xff")}, "call 1 could not be written down", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			data := recordExchanges(c.recorder, c.list...)
			_, err := llm.ParseRecording(data)
			if err == nil || !strings.Contains(err.Error(), "the recording is cut: ") || !strings.Contains(err.Error(), c.want) || bytes.Count(data, []byte("\n")) != c.lines {
				t.Errorf("got %v, %d bytes", err, len(data))
			}
		})
	}
}

// unlikeBytes are bytes that do not compress.
func unlikeBytes(n int) []byte {
	list, state := make([]byte, n), uint32(1)
	for i := range list {
		state = state*1664525 + 1013904223
		list[i] = byte(state >> 24)
	}
	return list
}

// TestParseExchanges: a recording that somebody else wrote is refused where it could not be
// replayed, however much it would decompress to.
func TestParseExchanges(t *testing.T) {
	t.Parallel()
	lines := func(members ...string) string {
		text := recordedModel
		for _, m := range members {
			text += `{"call":` + fmt.Sprint(strings.Count(text, "\n")) + `,"model":"test/m","request":"` + someDigest + `",` + m + "}\n"
		}
		return text
	}
	zipped := func(data []byte) string {
		return `"exchange":{"status":200,"gzip":"` + base64.StdEncoding.EncodeToString(data) + `"}`
	}
	most := bytes.Repeat(zip(t, make([]byte, 1<<20)), 64)
	large := zipped(most)
	broken := zip(t, []byte("a body"))
	broken[len(broken)-1]++
	for _, c := range []struct{ name, data, want string }{
		{"an answer", lines(`"exchange":{"api":"chat","path":"/x","status":200,"body":"x","later":1}`), ""},
		{"an answer without a body", lines(`"exchange":{"status":204}`), ""},
		{"an error", lines(`"exchange":{"api":"chat"},"error":{"message":"x"}`), ""},
		{"a byte too much in all", lines(large, large, large, large, zipped(zip(t, []byte("x")))), "line 6: the bodies of all answers have more than 268435456 bytes together"},
		{"a bomb", lines(zipped(bytes.Repeat(most, 64))), "line 2: the body of its answer has more than 67108864 bytes"},
		{"no base64", lines(`"exchange":{"status":200,"gzip":"-"}`), "line 2: reading JSON"},
		{"no gzip", lines(`"exchange":{"status":200,"gzip":"AAAA"}`), "line 2: decompressing an answer"},
		{"half a gzip", lines(zipped(most[:1000])), "line 2: decompressing an answer"},
		{"another checksum", lines(zipped(broken)), "line 2: decompressing an answer"},
		{"two bodies", lines(`"exchange":{"status":200,"body":"x","gzip":"AAAA"}`), "either a body or a gzip"},
		{"an answer and an error", lines(`"exchange":{"status":200},"error":{"message":"x"}`), "either an answer or an error"},
		{"a response too", lines(`"exchange":{"status":200},"response":{}`), "either a response or an exchange"},
		{"neither", lines(`"exchange":null`), "either a response or an error"},
		{"no status", lines(`"exchange":{}`), "the status of an answer is 0"},
		{"a status that is none", lines(`"exchange":{"status":1000}`), "the status of an answer is 1000"},
		{"an error's status that is none", lines(`"exchange":{},"error":{"kind":"x","status":-1}`), "the status of an error is -1"},
		{"a list", lines(`"exchange":[]`), "line 2: reading JSON"},
		{"a text as status", lines(`"exchange":{"status":"200"}`), "line 2: reading JSON"},
		{"a number as body", lines(`"exchange":{"status":200,"body":1}`), "line 2: reading JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := llm.ParseRecording([]byte(c.data))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestContentTypesAreHeaders: what is given as a content type can be sent as one.
func TestContentTypesAreHeaders(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"text/plain\r\nSet-Cookie: a", strings.Repeat("x", 257)} {
		x := passed("x", "")
		x.ContentType = text
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		planted := recordedModel + `{"call":1,"model":"test/m","request":"` + someDigest + `","exchange":{"api":"chat","path":"/chat/completions","status":200,"type":` + string(quoted) + "}}\n"
		for _, data := range [][]byte{recordExchanges(&llm.Recorder{}, x), []byte(planted)} {
			got, err := (&llm.Replay{Recording: parse(t, data)}).Exchange("test/m", llm.Chat, chatPath, nil)
			if err != nil || got.ContentType != "" {
				t.Errorf("got %+v, %v", got, err)
			}
		}
	}
}

// TestExchangesSurvive: what cannot be written ends the recording and nothing else.
func TestExchangesSurvive(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	_ = read.Close()
	r := &llm.Recorder{To: write}
	for range 3 {
		r.Exchange(passed("", ""), llm.Info{}, 0)
	}
	if _, err := write.Write(nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}
