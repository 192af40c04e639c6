package llm_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

// answers is a provider whose calls are answered by a function.
type answers struct {
	endpoint llm.Endpoint
	answer   func(ctx context.Context, req *llm.Request) (*llm.Response, error)
}

func (a answers) Info() llm.Info { return a.endpoint.Info }

func (a answers) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return a.answer(ctx, req)
}

func dialer(answer func(ctx context.Context, req *llm.Request) (*llm.Response, error)) llm.Dialer {
	return func(e llm.Endpoint) (llm.Model, error) { return answers{e, answer}, nil }
}

func open(t *testing.T, c *llm.Client, name string, o llm.Options) llm.Model {
	t.Helper()
	if o.Base == "" {
		o.Base = "http://127.0.0.1:1/v1"
	}
	m, err := c.Open(name, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func failing(kind llm.Kind, after time.Duration) error {
	return &llm.Error{Kind: kind, Model: "m", Message: "no", RetryAfter: after}
}

func TestFailuresAreRepeated(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		errs   []error // of the calls; then they succeed
		calls  int
		waited time.Duration
		fails  bool
	}{
		{"none", nil, 1, 0, false},
		{"a server that failed once", []error{failing(llm.Transient, 0)}, 2, 4 * time.Second, false},
		{"a server that asks for time", []error{failing(llm.Transient, 9*time.Second)}, 2, 9 * time.Second, false},
		{"a server that fails", slices.Repeat([]error{failing(llm.Transient, 0)}, 5), 3, 8 * time.Second, true},
		{"a key that is refused", []error{failing(llm.Auth, 0)}, 1, 0, true},
		{"too long", []error{failing(llm.ContextLength, 0)}, 1, 0, true},
		{"a bad request", []error{failing(llm.BadRequest, 0)}, 1, 0, true},
		{"nothing left", []error{failing(llm.Quota, 0)}, 1, 0, true},
		{"too many", []error{failing(llm.RateLimited, 0), failing(llm.RateLimited, 0)}, 3, 3 * time.Second, false},
		{"too many, and a time", []error{failing(llm.RateLimited, 30*time.Second)}, 2, 30 * time.Second, false},
		{"too many for today", []error{failing(llm.RateLimited, time.Hour)}, 1, 0, true},
		{"always too many", slices.Repeat([]error{failing(llm.RateLimited, time.Second)}, 20), 10, (1 + 2 + 4 + 8 + 16 + 32 + 60*3) * time.Second, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				c := &llm.Client{Dial: dialer(func(context.Context, *llm.Request) (*llm.Response, error) {
					calls++
					if calls <= len(tt.errs) {
						return nil, tt.errs[calls-1]
					}
					return &llm.Response{}, nil
				})}
				began := time.Now()
				_, err := open(t, c, "x/y", llm.Options{}).Complete(t.Context(), &llm.Request{})
				if (err != nil) != tt.fails || calls != tt.calls || time.Since(began) != tt.waited {
					t.Errorf("%v after %d calls and %s", err, calls, time.Since(began))
				}
			})
		})
	}
}

// TestInterrupted: whatever is waited for, the end of the context ends it, and the call says
// why.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	for _, kind := range []llm.Kind{llm.Transient, llm.RateLimited} {
		synctest.Test(t, func(t *testing.T) {
			c := &llm.Client{Dial: dialer(func(context.Context, *llm.Request) (*llm.Response, error) {
				return nil, failing(kind, 20*time.Second)
			})}
			m := open(t, c, "x/y", llm.Options{})
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(stop) })
			var all sync.WaitGroup
			for range 3 { // one waits for the time, others for their turns
				all.Go(func() {
					if _, err := m.Complete(ctx, &llm.Request{}); !errors.Is(err, stop) {
						t.Errorf("%s: %v", kind, err)
					}
				})
			}
			all.Wait()
		})
	}
}

// TestOneRate: 64 trials call a model whose server takes 8 calls in each second. All get
// the same share, and few calls are rejected.
func TestOneRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const trials, perSecond, seconds = 64, 8, 600
		var mu sync.Mutex
		taken, second, rejected := 0, int64(-1), 0
		c := &llm.Client{Dial: dialer(func(ctx context.Context, _ *llm.Request) (*llm.Response, error) {
			mu.Lock()
			if now := time.Now().Unix(); now != second {
				second, taken = now, 0
			}
			taken++
			late := taken > perSecond
			if late {
				rejected++
			}
			mu.Unlock()
			if late {
				return nil, failing(llm.RateLimited, time.Second)
			}
			time.Sleep(100 * time.Millisecond)
			return &llm.Response{}, ctx.Err()
		})}
		ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
		defer cancel()
		done := make([]int, trials)
		var all sync.WaitGroup
		for i := range trials {
			m := open(t, c, "x/y", llm.Options{})
			all.Go(func() {
				for ctx.Err() == nil {
					if _, err := m.Complete(ctx, &llm.Request{}); err == nil {
						done[i]++
					}
				}
			})
		}
		all.Wait()
		sum := 0
		for _, n := range done {
			sum += n
		}
		least, most := slices.Min(done), slices.Max(done)
		t.Logf("%d calls, %d rejected, of %d that would have been taken; shares from %d to %d", sum, rejected, seconds*perSecond, least, most)
		if least == 0 || float64(most)/float64(least) > 1.5 {
			t.Errorf("shares from %d to %d", least, most)
		}
		if sum < seconds*perSecond/4 || rejected > sum/4 {
			t.Errorf("%d calls, %d rejected, of %d that would have been taken", sum, rejected, seconds*perSecond)
		}
	})
}

// TestPerMinute: calls are spaced evenly, whoever makes them.
func TestPerMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Duration
		begin := time.Now()
		c := &llm.Client{PerMinute: 30, Dial: dialer(func(context.Context, *llm.Request) (*llm.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Since(begin))
			return &llm.Response{}, nil
		})}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { _, _ = open(t, c, "x/y", llm.Options{}).Complete(t.Context(), &llm.Request{}) })
		}
		all.Wait()
		if want := []time.Duration{0, 2 * time.Second, 4 * time.Second, 6 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("calls at %v, want %v", at, want)
		}
	})
}

func TestOpen(t *testing.T) {
	t.Parallel()
	host := map[string]string{"OPENAI_API_KEY": "host-key", "OLLAMA_API_BASE": "http://127.0.0.1:1234", "MINE_API_KEY": "mine", "ANTHROPIC_AUTH_TOKEN": "token", "X_Y_API_BASE": "http://h:1/"}
	halfPriced := value.NewObject(1)
	halfPriced.Set("input_cost_per_token", value.Float(1))
	for _, tt := range []struct {
		name string
		o    llm.Options
		want llm.Endpoint
		err  string
	}{
		{name: "openai/gpt-4o", want: llm.Endpoint{Model: "gpt-4o", API: llm.Chat, Key: "host-key"}},
		{name: "openai/gpt-4o", o: llm.Options{API: llm.Responses, Env: []string{"OPENAI_API_KEY=own", "OPENAI_BASE_URL=http://h:2/v1/"}},
			want: llm.Endpoint{Model: "gpt-4o", API: llm.Responses, Base: "http://h:2/v1", Key: "own"}},
		{name: "anthropic/claude-sonnet-4-5-20250929", want: llm.Endpoint{Model: "claude-sonnet-4-5-20250929", API: llm.Anthropic, Key: "token", Bearer: true}},
		{name: "ollama/qwen3", want: llm.Endpoint{Model: "qwen3", API: llm.Chat, Base: "http://127.0.0.1:1234/v1"}},
		{name: "openrouter/vendor/model", err: "set OPENROUTER_API_KEY"},
		{name: "openrouter/vendor/model", o: llm.Options{Base: "http://127.0.0.1:9/v1"}, want: llm.Endpoint{Model: "vendor/model", API: llm.Chat, Base: "http://127.0.0.1:9/v1"}},
		{name: "mine/m", o: llm.Options{Base: "http://127.0.0.1:9/v1"}, want: llm.Endpoint{Model: "m", API: llm.Chat, Base: "http://127.0.0.1:9/v1", Key: "mine"}},
		{name: "x.y/m", want: llm.Endpoint{Model: "m", API: llm.Chat, Base: "http://h:1"}},
		{name: "gpt-4o", err: "did you mean openai/gpt-4o?"},
		{name: "/x", err: "has no provider"},
		{name: "opnai/x", err: "did you mean openai?"},
		{name: "openai/x", o: llm.Options{API: "soap"}, err: `is "soap", want chat, responses, anthropic or gemini`},
		{name: "openai/x", o: llm.Options{Base: "ftp://h"}, err: "is not an http:// or https:// address"},
		{name: "openai/x", o: llm.Options{Base: "http://user:secret@h"}, err: "without user"},
		{name: "mine/m", err: `provider "mine" of model mine/m is not known`},
		{name: "hosted_vllm/x", o: llm.Options{Info: limits(1, 1, "0", "0")}, err: "needs the address of its server"},
		{name: "openai/x", o: llm.Options{Info: halfPriced}, err: "given together"},
	} {
		var got llm.Endpoint
		c := &llm.Client{
			Lookup: func(name string) (string, bool) { v, ok := host[name]; return v, ok },
			Dial:   func(e llm.Endpoint) (llm.Model, error) { got = e; return answers{endpoint: e}, nil },
		}
		_, err := c.Open(tt.name, tt.o)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: error %v, want %q in it", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil || got.Name != tt.name || got.Model != tt.want.Model || got.API != tt.want.API || got.Base != tt.want.Base || got.Key != tt.want.Key || got.Bearer != tt.want.Bearer {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
}

func limits(in, out int64, inCost, outCost string) *value.Object {
	o := value.NewObject(4)
	o.Set("max_input_tokens", value.NewInt(in))
	o.Set("max_output_tokens", value.NewInt(out))
	o.Set("input_cost_per_token", value.Str(inCost))
	o.Set("output_cost_per_token", value.Str(outCost))
	return o
}

// TestPrices: what the configuration says counts before the caller's table, and that before
// proctor's; what nobody knows costs nothing that could be told.
func TestPrices(t *testing.T) {
	t.Parallel()
	table, err := llm.ParseTable([]byte(`{"date": "2026-01-02", "models": {"x/known": {"max_input_tokens": 1000, "input_cost_per_token": 2, "output_cost_per_token": 3,
		"cache_read_input_token_cost": 1, "above_input_tokens": 50, "above": {"input_cost_per_token": 20, "output_cost_per_token": 30}}}}`))
	if err != nil || table.Date != "2026-01-02" {
		t.Fatal(table, err)
	}
	usage := llm.Usage{Prompt: 10, Completion: 5, Cached: 4, CacheWrite: 2}
	said := 0.5
	for _, tt := range []struct {
		name  string
		info  *value.Object
		usage *llm.Usage
		said  *float64
		want  *float64
	}{
		{"x/known", nil, &usage, nil, ptr(4.0*2 + 4*1 + 2*2 + 5*3)},
		{"x/known-2026-01-01", nil, &usage, nil, ptr(4.0*2 + 4*1 + 2*2 + 5*3)},
		{"x/known", nil, &llm.Usage{Prompt: 51, Completion: 1}, nil, ptr(51.0*20 + 30)},
		{"x/known", nil, &usage, &said, &said},
		{"x/known", limits(1, 1, "1e0", "0"), &usage, nil, ptr(4.0 + 4 + 2)},
		{"x/known", nil, nil, nil, nil},
		{"x/other", nil, &usage, nil, nil},
		{"openai/gpt-4o", nil, &llm.Usage{Prompt: 1_000_000, Completion: 1_000_000}, nil, ptr(12.5)},
	} {
		c := &llm.Client{Known: table, Dial: dialer(func(context.Context, *llm.Request) (*llm.Response, error) {
			return &llm.Response{Usage: tt.usage, Cost: tt.said}, nil
		})}
		got, err := open(t, c, tt.name, llm.Options{Info: tt.info}).Complete(t.Context(), &llm.Request{})
		switch {
		case err != nil:
			t.Fatal(err)
		case (got.Cost == nil) != (tt.want == nil), got.Cost != nil && math.Abs(*got.Cost-*tt.want) > 1e-9:
			t.Errorf("%s: cost %v, want %v", tt.name, got.Cost, tt.want)
		}
	}
}

func ptr(f float64) *float64 { return &f }

// TestKnownModels: every entry has limits that can be, and output costs no less than what
// is read from a cache.
func TestKnownModels(t *testing.T) {
	t.Parallel()
	table := llm.KnownModels()
	if _, err := time.Parse(time.DateOnly, table.Date); err != nil || len(table.Names()) < 50 {
		t.Fatalf("%d models of %q", len(table.Names()), table.Date)
	}
	for _, name := range table.Names() {
		info, ok := table.Find(name)
		if !ok || info.Prices == nil || info.Prices.Output <= 0 || info.Prices.Output > 1e-3 || info.InputLimit < 0 || info.OutputLimit > 1<<20 {
			t.Errorf("%s: %+v", name, info)
		}
		if _, err := (&llm.Client{Dial: dialer(nil)}).Open(name, llm.Options{Base: "http://127.0.0.1:1"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseTableRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[]`:                     "expected an object",
		`{`:                      "reading a table of models",
		`{"models": 1}`:          `expected the member "models"`,
		`{"models": {"a/b": 1}}`: `"a/b": expected an object, got 1`,
		`{"models": {"a/b": {"input_cost_per_token": -1}}}`:                                                            "'input_cost_per_token' must be a number that is not negative, got -1",
		`{"models": {"a/b": {"input_cost_per_token": 1, "output_cost_per_token": 1, "above_input_tokens": 5}}}`:        "without an object above",
		`{"models": {"a/b": {"max_input_tokens": [1]}}}`:                                                               "must be a number",
		`{"models": {"a/b": {"input_cost_per_token": 1}}}`:                                                             "given together",
		`{"models": {"a/b": {"input_cost_per_token": NaN, "output_cost_per_token": 1}}}`:                               "must be a number",
		`{"models": {"a/b": {"max_output_tokens": 1e300, "input_cost_per_token": 1, "output_cost_per_token": "one"}}}`: "must be a number",
	} {
		if _, err := llm.ParseTable([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", text, err, want)
		}
	}
}

// TestHostedVLLM: names and limits of models on a server of one's own, as the reference
// takes them.
func TestHostedVLLM(t *testing.T) {
	t.Parallel()
	v, err := value.Decode(vectors.File(t, "llm/hosted-vllm.json"))
	if err != nil {
		t.Fatal(err)
	}
	cases, _ := v.(value.List)
	if len(cases) == 0 {
		t.Fatal("there is no case")
	}
	for _, item := range cases {
		c := item.(*value.Object)
		info, _ := vectors.Get(c, "info").(*value.Object)
		var got llm.Endpoint
		client := &llm.Client{Dial: func(e llm.Endpoint) (llm.Model, error) { got = e; return answers{endpoint: e}, nil }}
		name := vectors.Str(c, "model")
		_, err := client.Open(name, llm.Options{Base: "http://127.0.0.1:1/v1", Info: info})
		if !vectors.Bool(c, "ok") {
			if err == nil || !strings.Contains(err.Error(), vectors.Str(c, "error_contains")) || exception.TypeOf(err) != exception.ValueError {
				t.Errorf("%s: %v, want %q in it", name, err, vectors.Str(c, "error_contains"))
			}
			continue
		}
		if err != nil || got.Model != vectors.Str(c, "name") || got.Info.Prices == nil {
			t.Errorf("%s: %+v, %v", name, got, err)
			continue
		}
		want := vectors.Object(c, "normalized")
		numbers := map[string]float64{
			"max_input_tokens": float64(got.Info.InputLimit), "max_output_tokens": float64(got.Info.OutputLimit),
			"input_cost_per_token": got.Info.Prices.Input, "output_cost_per_token": got.Info.Prices.Output,
		}
		for member, f := range numbers {
			if w, err := value.ToFloat(vectors.Get(want, member).(value.Number)); err != nil || w != f {
				t.Errorf("%s: %s is %v, want %v (%v)", name, member, f, w, err)
			}
		}
	}
}
