package llm_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/value"
)

// always opens one model, whatever its name.
func always(m llm.Model) llm.Opener {
	return llm.OpenerFunc(func(string, llm.Options) (llm.Model, error) { return m, nil })
}

func openModel(t testing.TB, o llm.Opener) llm.Model {
	t.Helper()
	m, err := o.Open("test/m", llm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ask(text string) *llm.Request {
	return &llm.Request{Messages: []llm.Message{llm.TextMessage(llm.User, text)}}
}

// record makes a recording of the answers of a script, asked "call 0" and so on.
func record(t testing.TB, r *llm.Recorder, s *llmtest.Script) []byte {
	t.Helper()
	var out bytes.Buffer
	r.Opener, r.To = always(s), &out
	m := openModel(t, r)
	for i, a := range s.Answers {
		resp, err := m.Complete(t.Context(), ask(fmt.Sprintf("call %d", i)))
		if resp != a.Response || !errors.Is(err, a.Err) {
			t.Fatalf("the recorder gave %v, %v", resp, err)
		}
	}
	return out.Bytes()
}

func parse(t testing.TB, data []byte) *llm.Recording {
	t.Helper()
	r, err := llm.ParseRecording(data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return r
}

func drawText(t *rapid.T, label string) string {
	return rapid.StringOf(rapid.SampledFrom([]rune("aé\"\\\n<&\u2028日😀\x00"))).Draw(t, label)
}

func draw[T any](t *rapid.T, label string, make func() T) *T {
	if !rapid.Bool().Draw(t, "has "+label) {
		return nil
	}
	v := make()
	return &v
}

func drawFloat(t *rapid.T) float64 { return rapid.Float64Range(-1e9, 1e9).Draw(t, "number") }

func drawResponse(t *rapid.T) *llm.Response {
	r := &llm.Response{
		Message: llm.Message{Role: llm.Assistant, Reasoning: drawText(t, "reasoning")},
		Finish:  rapid.SampledFrom([]llm.Finish{"", llm.Stopped, llm.CallsMade, llm.Length}).Draw(t, "finish"),
		Model:   drawText(t, "model"), ID: drawText(t, "id"),
		Cost: draw(t, "cost", func() float64 { return drawFloat(t) }),
		Usage: draw(t, "usage", func() llm.Usage {
			return llm.Usage{Prompt: rapid.Int64().Draw(t, "prompt"), Completion: 2, Cached: rapid.Int64().Draw(t, "cached"), CacheWrite: 1}
		}),
		PromptTokenIDs: rapid.SliceOf(rapid.Int64()).Draw(t, "tokens"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "parts") {
		p := llm.Part{Text: drawText(t, "text")}
		if rapid.Bool().Draw(t, "image") {
			p.Image = &llm.Image{MediaType: "image/png", Data: rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "data"), URL: drawText(t, "url")}
		}
		r.Message.Parts = append(r.Message.Parts, p)
	}
	for range rapid.IntRange(0, 3).Draw(t, "calls") {
		r.Message.Calls = append(r.Message.Calls, llm.ToolCall{ID: drawText(t, "call"), Name: "n", Arguments: drawText(t, "arguments")})
	}
	if rapid.Bool().Draw(t, "native") {
		r.Message.Native = &llm.Native{API: llm.Anthropic, Content: []byte(rapid.SampledFrom([]string{"null", "1e400", `[{"a":"<b>"},"é\u00e9"]`}).Draw(t, "content"))}
	}
	if rapid.Bool().Draw(t, "logprobs") {
		r.LogProbs = rapid.SliceOf(rapid.OneOf(rapid.Float64Range(-1e3, 0), rapid.SampledFrom([]float64{math.Inf(-1), math.Inf(1)}))).Draw(t, "logprobs")
	}
	if rapid.Bool().Draw(t, "extra") {
		r.Extra = value.NewObject(2)
		r.Extra.Set("z", value.Str(drawText(t, "extra")))
		r.Extra.Set("a", value.NewInt(rapid.Int64().Draw(t, "int")))
	}
	return r
}

func drawAnswer(t *rapid.T) llmtest.Answer {
	switch rapid.IntRange(0, 4).Draw(t, "answer") {
	case 0:
		return llmtest.Answer{Err: &llm.Error{
			Kind: rapid.SampledFrom([]llm.Kind{llm.RateLimited, llm.ContextLength, llm.Transient, "another"}).Draw(t, "kind"), Model: "test/m",
			Status: rapid.IntRange(0, 599).Draw(t, "status"), Message: drawText(t, "message"),
			RetryAfter: time.Duration(rapid.IntRange(0, 1e9).Draw(t, "after")) * time.Millisecond,
		}}
	case 1:
		return llmtest.Answer{Err: exception.New("SomeError", drawText(t, "message"))}
	}
	return llmtest.Answer{Response: drawResponse(t)}
}

// TestRecordingsRoundTrip: what a recording is replayed as is what was recorded.
func TestRecordingsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		price := 1e-7
		s := &llmtest.Script{
			About:   llm.Info{Name: "test/m", InputLimit: rapid.Int64().Draw(rt, "limit"), Prices: &llm.Prices{Input: drawFloat(rt), CacheRead: &price, Above: &llm.Prices{Output: 2}, AboveInput: 5}},
			Answers: rapid.SliceOfN(rapid.Custom(drawAnswer), 1, 5).Draw(rt, "answers"),
		}
		data := record(t, &llm.Recorder{}, s)
		m := openModel(t, &llm.Replay{Recording: parse(t, data), Name: "one", Strict: true})
		if got := m.Info(); !reflect.DeepEqual(got, s.About) {
			rt.Fatalf("the model is %+v, want %+v", got, s.About)
		}
		for i, a := range s.Answers {
			resp, err := m.Complete(t.Context(), ask(fmt.Sprintf("call %d", i)))
			if !reflect.DeepEqual(resp, a.Response) || !reflect.DeepEqual(err, a.Err) {
				rt.Fatalf("call %d: got %+v, %v, want %+v, %v\n%s", i, resp, err, a.Response, a.Err, data)
			}
		}
		if _, err := m.Complete(t.Context(), ask("more")); exception.TypeOf(err) != llm.ReplayDivergedError || !strings.Contains(err.Error(), "recording one has no call") {
			rt.Fatalf("beyond the recording: %v", err)
		}
	})
}

// TestReplayDiverges: a request that differs is told of, or refused.
func TestReplayDiverges(t *testing.T) {
	t.Parallel()
	data := record(t, &llm.Recorder{}, &llmtest.Script{Answers: []llmtest.Answer{llmtest.Say("a"), llmtest.Say("b"), llmtest.Say("c")}})
	recording := parse(t, data)
	lenient := &llm.Replay{Recording: recording, Name: "one"}
	m := openModel(t, lenient)
	for i, want := range []string{"a", "b", "c"} {
		resp, err := m.Complete(t.Context(), ask(strings.Repeat("x", i)+"call 0"))
		if err != nil || resp.Message.Text() != want {
			t.Fatalf("call %d: %v, %v", i, resp, err)
		}
	}
	if got, want := lenient.Diverged(), "call 2 of recording one was made with another request"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	strict := openModel(t, &llm.Replay{Recording: recording, Name: "one", Strict: true})
	named := ask("call 0")
	named.SessionID = "of this run"
	if _, err := strict.Complete(t.Context(), named); err != nil {
		t.Error(err)
	}
	if _, err := strict.Complete(t.Context(), ask("call 0")); exception.TypeOf(err) != llm.ReplayDivergedError || !strings.Contains(err.Error(), "call 2 of recording one") {
		t.Errorf("got %v", err)
	}
	if _, err := (&llm.Replay{Recording: recording, Name: "one"}).Open("test/other", llm.Options{}); exception.TypeOf(err) != llm.ReplayDivergedError {
		t.Errorf("another model: %v", err)
	}
}

// TestRequestsDiffer: whatever changes an answer changes the digest.
func TestRequestsDiffer(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	changes := []func(*llm.Request){
		func(*llm.Request) {},
		func(r *llm.Request) { r.Messages[0].Parts[0].Image = &llm.Image{Data: []byte{1}} },
		func(r *llm.Request) { r.Messages[0].Native = &llm.Native{API: llm.Chat, Content: []byte("{}")} },
		func(r *llm.Request) { r.Messages[0].CallID = "x" },
		func(r *llm.Request) { r.Tools = []llm.ToolSpec{{Name: "t"}} },
		func(r *llm.Request) { r.Tools = []llm.ToolSpec{{Name: "t", Parameters: value.NewObject(0)}} },
		func(r *llm.Request) { r.MaxOutput = 1 },
		func(r *llm.Request) { r.Temperature = new(0.0) },
		func(r *llm.Request) { r.Effort = "low" },
		func(r *llm.Request) { r.ThinkingTokens = 1 },
		func(r *llm.Request) { r.SendReasoning = true },
		func(r *llm.Request) { r.Tokens = true },
		func(r *llm.Request) { r.PreviousID = "x" },
		func(r *llm.Request) { r.Extra = value.NewObject(0) },
	}
	s := &llmtest.Script{}
	m := openModel(t, &llm.Recorder{Opener: always(s), To: &out})
	seen := map[string]int{}
	for i, change := range changes {
		s.Answers = append(s.Answers, llmtest.Say(""))
		req := ask("x")
		change(req)
		out.Reset()
		if _, err := m.Complete(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		_, digest, _ := strings.Cut(out.String(), `"request":"`)
		digest, _, _ = strings.Cut(digest, `"`)
		if other, same := seen[digest]; same || len(digest) != 64 {
			t.Errorf("change %d has the digest %q, as change %d", i, digest, other)
		}
		seen[digest] = i
	}
}

// TestRecorderHidesSecrets: a secret is in no line, and a replay that never saw it makes
// the same requests.
func TestRecorderHidesSecrets(t *testing.T) {
	t.Parallel()
	const secret, mark = "sesame", "[SECRET]"
	hide := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(secret), []byte(mark)) }
	s := &llmtest.Script{Answers: []llmtest.Answer{
		{Response: &llm.Response{Message: llm.Message{
			Role: llm.Assistant, Parts: []llm.Part{{Text: secret}}, Native: &llm.Native{API: llm.Chat, Content: []byte(`{"text": "` + secret + `"}`)},
		}}},
		{Err: errors.New("it was " + secret)},
	}}
	var out bytes.Buffer
	m := openModel(t, &llm.Recorder{Opener: always(s), To: &out, Redact: hide})
	conversation := func(m llm.Model, first string) {
		req := ask(first)
		resp, err := m.Complete(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		req.Messages = append(req.Messages, resp.Message)
		if _, err := m.Complete(t.Context(), req); err == nil || !strings.HasPrefix(err.Error(), "it was ") {
			t.Errorf("got %v", err)
		}
	}
	conversation(m, secret)
	if strings.Contains(out.String(), secret) || strings.Count(out.String(), mark) != 3 {
		t.Errorf("the recording is\n%s", out.String())
	}
	conversation(openModel(t, &llm.Replay{Recording: parse(t, out.Bytes()), Strict: true, Redact: hide}), mark)
}

// TestRecorderLimits: a recording that would be too long ends with a line that says so, and
// is not replayed. So is one of which a line cannot be read any more.
func TestRecorderLimits(t *testing.T) {
	t.Parallel()
	answers := []llmtest.Answer{llmtest.Say("a"), llmtest.Say(strings.Repeat("b", 1000)), llmtest.Say("c")}
	for _, c := range []struct {
		name     string
		recorder *llm.Recorder
		want     string
		lines    int
	}{
		{"too long", &llm.Recorder{Limit: 1000}, "the recording is cut: call 2 would have made it longer than 1000 bytes", 3},
		{"nothing fits", &llm.Recorder{Limit: 1}, "the recording is cut: call 1 would have made it longer than 1 bytes", 1},
		{"a secret that is not text", &llm.Recorder{Redact: func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte(`"call":2`), []byte(`"call":[X]`))
		}}, "the recording is cut: call 2 could not be written down", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			data := record(t, c.recorder, &llmtest.Script{Answers: answers})
			_, err := llm.ParseRecording(data)
			if err == nil || !strings.Contains(err.Error(), c.want) || bytes.Count(data, []byte("\n")) != c.lines {
				t.Errorf("got %v\n%s", err, data)
			}
		})
	}
}

// TestRecorderSurvives: what cannot be written ends the recording and no call.
func TestRecorderSurvives(t *testing.T) {
	t.Parallel()
	s := &llmtest.Script{Answers: []llmtest.Answer{llmtest.Say("a"), llmtest.Say("b")}}
	read, write := io.Pipe()
	_ = read.Close()
	m := openModel(t, &llm.Recorder{Opener: always(s), To: write})
	for range s.Answers {
		if _, err := m.Complete(t.Context(), ask("")); err != nil {
			t.Error(err)
		}
	}
	refused := errors.New("no such model")
	r := &llm.Recorder{Opener: llm.OpenerFunc(func(string, llm.Options) (llm.Model, error) { return nil, refused }), To: io.Discard}
	if _, err := r.Open("x", llm.Options{}); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

// TestInterruptedCalls: a call that ended with its trial has no answer to be replayed, and
// a replay ends with its own context.
func TestInterruptedCalls(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out bytes.Buffer
	if _, err := openModel(t, &llm.Recorder{Opener: always(&llmtest.Script{}), To: &out}).Complete(ctx, ask("")); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	m := openModel(t, &llm.Replay{Recording: parse(t, out.Bytes()), Name: "one"})
	if _, err := m.Complete(ctx, ask("")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := m.Complete(t.Context(), ask("")); exception.TypeOf(err) != llm.ReplayDivergedError || !strings.Contains(err.Error(), "call 1 of recording one was never answered") {
		t.Errorf("got %v", err)
	}
}

const recordedModel = `{"schema":"proctor-model-calls-v1","model":"test/m","info":{"name":"test/m"}}` + "\n"

var someDigest = strings.Repeat("0", 64)

func TestParseRecording(t *testing.T) {
	t.Parallel()
	call := func(text string) string { return strings.ReplaceAll(text, "SUM", someDigest) + "\n" }
	good := call(`{"call":1,"model":"test/m","request":"SUM","error":{"message":"x"},"later":1}`)
	for _, c := range []struct{ name, data, want string }{
		{"good", recordedModel + good, ""},
		{"a call that a crash cut", recordedModel + good + `{"call":2,"mod`, ""},
		{"nothing", "", "it is empty"},
		{"one cut line", strings.TrimSpace(recordedModel), "it is empty"},
		{"no JSON", recordedModel + "\n", "line 2: reading JSON"},
		{"another format", `{"schema":"x"}` + "\n", `line 1: the schema is "x"`},
		{"no model", `{"schema":"proctor-model-calls-v1"}` + "\n", "line 1: there is no model"},
		{"a call before its model", good, `line 1: there is no line with a schema about model "test/m"`},
		{"a call twice", recordedModel + good + good, "line 3: call is 1, want 2"},
		{"no digest", recordedModel + call(`{"call":1,"model":"test/m","error":{"message":"x"}}`), "request is no SHA-256"},
		{"no answer", recordedModel + call(`{"call":1,"model":"test/m","request":"SUM"}`), "either a response or an error"},
		{"two answers", recordedModel + call(`{"call":1,"model":"test/m","request":"SUM","response":{},"error":{}}`), "either a response or an error"},
		{"no exception", recordedModel + call(`{"call":1,"model":"test/m","request":"SUM","error":{"type":"`+strings.Repeat("x", 200)+`"}}`), "too long to be the name"},
		{"extra", recordedModel + call(`{"call":1,"model":"test/m","request":"SUM","response":{"extra":[]}}`), "extra is not an object"},
		{"deep", recordedModel + call(`{"call":1,"model":"test/m","request":"SUM","response":{"extra":`+strings.Repeat("[", 20000)+`}}`), "reading JSON"},
		{"a cut", recordedModel + good + `{"cut":"why"}` + "\n", "line 3: the recording is cut: why"},
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

// FuzzParseRecording: any file is replayed to its end or refused.
func FuzzParseRecording(f *testing.F) {
	f.Add([]byte(recordedModel))
	f.Add([]byte(recordedModel + `{"call":1,"model":"test/m","request":"` + someDigest + `","response":{"message":{"role":"assistant","parts":[{"text":"a"},{"image":{}}],"native":{"api":"chat"}},"logprobs":["-Inf",0],"extra":{"a":1},"usage":{}}}` + "\n"))
	f.Add([]byte(recordedModel + `{"call":1,"model":"test/m","request":"` + someDigest + `","error":{"kind":"rate limit","retry_after_ms":9223372036854775807}}` + "\n"))
	exchange := recordedModel + `{"call":1,"model":"test/m","request":"` + someDigest + `","exchange":{"api":"chat","path":"/x?y","status":200,"type":"text/plain",`
	f.Add([]byte(exchange + `"body":"é\u0000","cut":true,"usage":{"prompt":1},"cost":0.5}}` + "\n"))
	f.Add([]byte(exchange + `"gzip":"` + base64.StdEncoding.EncodeToString(zip(f, []byte(strings.Repeat("\xff", 2000)))) + `"}}` + "\n"))
	f.Add([]byte(recordedModel + `{"call":1,"model":"test/m","request":"` + someDigest + `","exchange":{"api":"gemini","path":"/x"},"error":{"kind":"rate limit","status":429}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := llm.ParseRecording(data)
		if err != nil {
			return
		}
		replay := &llm.Replay{Recording: r, Name: "fuzzed"}
		m, err := replay.Open("test/m", llm.Options{})
		if err != nil {
			return
		}
		var out bytes.Buffer
		recorder := &llm.Recorder{Opener: always(m), To: &out}
		again := openModel(t, recorder)
		for range bytes.Count(data, []byte("\n")) + 1 {
			resp, err := again.Complete(t.Context(), ask("x"))
			if (resp == nil) == (err == nil) {
				t.Fatalf("%v, %v", resp, err)
			}
			if failed, ok := errors.AsType[*llm.Error](err); ok && failed.RetryAfter < 0 {
				t.Fatalf("%+v", failed)
			}
		}
		exchangeAll(t, replay, recorder, bytes.Count(data, []byte("\n")))
		if _, err := llm.ParseRecording(out.Bytes()); err != nil && !strings.Contains(err.Error(), "the recording is cut") {
			t.Fatalf("the recording of a replay: %v\n%s", err, out.Bytes())
		}
	})
}

// exchangeAll has up to n exchanges replayed and recorded again.
func exchangeAll(t *testing.T, replay *llm.Replay, again *llm.Recorder, n int) {
	for range n {
		x, err := replay.Exchange("test/m", llm.Chat, "/x", nil)
		if (x == nil) == (err == nil) {
			t.Fatalf("%v, %v", x, err)
		}
		if err != nil {
			x = passed("", "")
			x.Err = err
		}
		again.Exchange(x, llm.Info{}, 0)
	}
}
