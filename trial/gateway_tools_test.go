package trial_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

// providersKey is what no command and no file may have.
const providersKey = "sk-the-providers-own-key"

// work is the text of the agent's command.
const work = "work on it"

// gatewayBench is a bench whose agent command calls a model of a server.
type gatewayBench struct {
	*bench
	server *llmtest.Server
	base   string // of the server
}

// dialect is how one provider's model is reached.
type dialect struct {
	provider string
	api      llm.API
	key      string // the variable that holds it
	path     string // behind the gateway's address
	// address is the variable that a program of the provider's looks into, version what it
	// adds to that.
	address, version string
}

func dialects() []dialect {
	return []dialect{
		{"openai", llm.Chat, "OPENAI_API_KEY", "/v1/chat/completions", "OPENAI_BASE_URL", "/chat/completions"},
		{"anthropic", llm.Anthropic, "ANTHROPIC_API_KEY", "/v1/messages", "ANTHROPIC_BASE_URL", "/v1/messages"},
		{"gemini", llm.Gemini, "GEMINI_API_KEY", "/v1beta/models/m:generateContent", "GOOGLE_GEMINI_BASE_URL", "/v1beta/models/m:generateContent"},
	}
}

func openai() dialect { return dialects()[0] }

// anAnswer uses 150 tokens.
func anAnswer(*llmtest.Request) llmtest.Turn {
	return llmtest.Turn{Text: "hello", Usage: &llm.Usage{Prompt: 120, Completion: 30, Cached: 20}}
}

// gatewayPrices are those of the model, in dollars.
func gatewayPrices() *llm.Prices { return &llm.Prices{Input: 0.001, Output: 0.002} }

// withGateway lets the agent command work with the model m of a provider, whose server
// answers with an answer.
func withGateway(t testing.TB, b *bench, d dialect, answer func(*llmtest.Request) llmtest.Turn) *gatewayBench {
	t.Helper()
	g := &gatewayBench{bench: b, server: &llmtest.Server{Key: providersKey, Answer: answer}}
	if answer == nil {
		g.server.Answer = anAnswer
	}
	server := httptest.NewServer(g.server)
	t.Cleanup(server.Close)
	g.base = server.URL
	if d.api == llm.Chat {
		g.base += "/v1"
	}
	clock := &llmtest.Clock{}
	b.Models = &llm.Client{Lookup: b.Lookup, Now: clock.Now, Wait: clock.Wait}
	commandAgent(work)(&b.cfg)
	b.cfg.Agent.ModelName = new(d.provider + "/m")
	b.cfg.Agent.Env.Set(d.key, providersKey)
	b.cfg.Agent.Kwargs.Set("api_base", value.Str(g.base))
	prices := value.NewObject(2)
	prices.Set("input_cost_per_token", value.Float(gatewayPrices().Input))
	prices.Set("output_cost_per_token", value.Float(gatewayPrices().Output))
	b.cfg.Agent.Kwargs.Set("model_info", prices)
	return g
}

// gatewayBenchOf is a bench on a task with one step whose agent's command does what is given.
func gatewayBenchOf(t testing.TB, d dialect, answer func(*llmtest.Request) llmtest.Turn, do ...fake.Handler) *gatewayBench {
	t.Helper()
	b := newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{fake.On(work, do...), rewardRule("reward.txt", "1.0")}})
	return withGateway(t, b, d, answer)
}

// counted is what the server has counted.
func (g *gatewayBench) counted() llmtest.Count {
	return g.server.Counts()[llmtest.Account{Model: "m", Key: providersKey}]
}

// reply is what came of a call.
type reply struct {
	status int
	text   string
}

// post makes a call, on a connection of its own.
func post(ctx context.Context, url, key, body string) (reply, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, string(text)}, err
}

// asking is the body of a call, with what is added to it.
func asking(more string) string {
	return `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi."}],"contents":[{"role":"user","parts":[{"text":"Hi."}]}]` + more + `}`
}

// call calls the model as the variables of a process say.
func call(ctx context.Context, p *fake.Process, d dialect, more string) (reply, error) {
	return post(ctx, p.Env["PROCTOR_MODEL_URL"]+d.path, p.Env["PROCTOR_MODEL_KEY"], asking(more))
}

// calls makes n calls, prints what comes of them, and ends with 1 when one fails.
func calls(d dialect, n int, more string) fake.Handler {
	return func(ctx context.Context, p *fake.Process) (int, error) {
		for range n {
			got, err := call(ctx, p, d, more)
			_, _ = fmt.Fprintln(p.Stdout, got.status, got.text, err)
			if ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
			if err != nil || got.status != http.StatusOK {
				return 1, nil
			}
		}
		return 0, nil
	}
}

// stream makes a call whose answer is a stream, and reads it to its end, which does not come
// before the call is counted.
func stream(ctx context.Context, p *fake.Process, d dialect) error {
	d.path = strings.Replace(d.path, ":generateContent", ":streamGenerateContent?alt=sse", 1)
	_, err := call(ctx, p, d, `,"stream":true`)
	return err
}

// heedless makes calls, one after the other, and ends with a code, whatever comes of them.
func heedless(d dialect, n, code int) fake.Handler {
	return func(ctx context.Context, p *fake.Process) (int, error) {
		for range n {
			if err := stream(ctx, p, d); err != nil && ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
		}
		return code, nil
	}
}

// checkUse compares a result of the agent with a usage.
func checkUse(t *testing.T, what string, got *jobdir.AgentResult, want llm.Usage) {
	t.Helper()
	if got == nil || got.NInputTokens == nil || got.NOutputTokens == nil || got.NCacheTokens == nil || got.CostUSD == nil {
		t.Errorf("%s: agent result %+v", what, got)
		return
	}
	numbers := fmt.Sprint(value.Repr(*got.NInputTokens), " ", value.Repr(*got.NCacheTokens), " ", value.Repr(*got.NOutputTokens))
	if wanted := fmt.Sprint(want.Prompt, " ", want.Cached, " ", want.Completion); numbers != wanted {
		t.Errorf("%s: the result has %s tokens of prompts, caches and answers, want %s", what, numbers, wanted)
	}
	if cost := gatewayPrices().Cost(want); math.Abs(*got.CostUSD-cost) > 1e-9 {
		t.Errorf("%s: it cost %v, want %v", what, *got.CostUSD, cost)
	}
}

// hasNowhere fails for each file of a trial's directory that has a text.
func (b *bench) hasNowhere(t *testing.T, text string) {
	t.Helper()
	err := filepath.WalkDir(b.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text) {
			t.Errorf("%s has %q:\n%s", path, text, data)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// deaf is a backend whose sandboxes carry no connections.
type deaf struct{ sandbox.Backend }

func (d deaf) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	sb, err := d.Backend.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	return struct{ sandbox.Sandbox }{sb}, nil
}

// then ends a command that was let go on, and nothing else does.
func then(ends bool) fake.Handler {
	if ends {
		return fake.Exit(0)
	}
	return fake.Hang()
}

// gatewayWithDaemon is a bench whose agent leaves a daemon in the middle of a call, which
// waits for the answer, does not send the whole request or does not read the answer; called
// are the calls that count.
func gatewayWithDaemon(t *testing.T, what string) (g *gatewayBench, called int64) {
	t.Helper()
	under := make(chan struct{})
	var once sync.Once
	begun := func() { once.Do(func() { close(under) }) }
	answer := func(*llmtest.Request) llmtest.Turn {
		if what == "waits" {
			begun()
			return llmtest.Turn{Fault: &llmtest.Fault{Kind: llmtest.Wait}}
		}
		return llmtest.Turn{Text: strings.Repeat("hello ", 4<<20)}
	}
	daemon := func(ctx context.Context, p *fake.Process) (int, error) {
		defer begun()
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(p.Env["PROCTOR_MODEL_URL"], "http://"))
		if err != nil {
			return 0, err
		}
		defer func() { _ = conn.Close() }()
		head := "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + p.Env["PROCTOR_MODEL_KEY"] + "\r\n"
		body := asking("")
		if what == "sends no more" {
			head += "Expect: 100-continue\r\n"
		}
		head += fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))
		if what != "sends no more" {
			head += body
		}
		if _, err := io.WriteString(conn, head); err != nil {
			return 0, err
		}
		if what != "waits" { // the first byte says that the body is read, or that there is an answer
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			begun()
		}
		<-ctx.Done()
		return 0, context.Cause(ctx)
	}
	g = gatewayBenchOf(t, openai(), answer, fake.Leave(daemon), fake.Wait(under))
	if what != "sends no more" {
		called = 1
	}
	return g, called
}
