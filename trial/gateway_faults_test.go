package trial_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// TestGatewayFailures: a model that never answered is the trial's exception, whatever the
// command ends with, and nothing is judged; so is one that had answered, where the agent
// then gave up. Where it did not, or asked for something that cannot be answered, its work
// is judged.
func TestGatewayFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault *llmtest.Fault // nil for a server that is not there
		want  string
	}{
		"a refused key": {&llmtest.Fault{Kind: llmtest.Auth, Message: "Incorrect API key provided: " + providersKey}, "AuthenticationError"},
		"no such model": {&llmtest.Fault{Kind: llmtest.Unknown}, "NotFoundError"},
		"nothing left":  {&llmtest.Fault{Kind: llmtest.Quota}, "RateLimitError"},
		"too many":      {&llmtest.Fault{Kind: llmtest.RateLimit, RetryAfter: "1"}, "RateLimitError"},
		"overloaded":    {&llmtest.Fault{Kind: llmtest.Overload}, "InternalServerError"},
		"too long":      {&llmtest.Fault{Kind: llmtest.Context}, "ContextLengthExceededError"},
		"down":          {nil, "APIConnectionError"},
	} {
		for _, d := range dialects() {
			t.Run(name+", "+d.provider, func(t *testing.T) {
				t.Parallel()
				for _, code := range []int{0, 1} {
					failing(t, d, c.fault, 0, code, c.want, false)
				}
				switch {
				case c.fault == nil:
					return
				case c.fault.Kind == llmtest.Context:
					failing(t, d, c.fault, 1, 1, exception.NonZeroAgentExitCodeError, true)
				default:
					failing(t, d, c.fault, 1, 1, c.want, false)
				}
				failing(t, d, c.fault, 1, 0, "", true)
			})
		}
	}
}

// failing runs an agent that goes on calling a server, which does not answer after some
// calls, and that ends with a code.
func failing(t *testing.T, d dialect, fault *llmtest.Fault, answered, code int, want string, judged bool) {
	t.Helper()
	var mu sync.Mutex
	n := 0
	g := gatewayBenchOf(t, d, func(r *llmtest.Request) llmtest.Turn {
		mu.Lock()
		defer mu.Unlock()
		if n++; n > answered {
			return llmtest.Turn{Fault: fault}
		}
		return anAnswer(r)
	}, heedless(d, answered+1, code))
	if fault == nil {
		g.cfg.Agent.Kwargs.Set("api_base", value.Str("http://127.0.0.1:1/v1"))
	}
	res := g.run(t)
	rewards := "no result"
	if judged {
		rewards = "{'reward': 1.0}"
	}
	if exceptionType(res) != want || rewardsText(res) != rewards || (res.Verifier != nil) != judged {
		t.Errorf("%d answers, exit code %d: exception %+v, rewards %s, want %q and %s", answered, code, res.ExceptionInfo, rewardsText(res), want, rewards)
	}
	if n := readNotes(t, g.dir).Gateway; n == nil || n.Calls != int64(answered) {
		t.Errorf("notes %+v", n)
	}
	g.hasNowhere(t, providersKey)
}

// TestGatewayFailureThatWasOvercome: an agent that was answered after a failure ends with
// its own error.
func TestGatewayFailureThatWasOvercome(t *testing.T) {
	t.Parallel()
	g := gatewayBenchOf(t, openai(), func(r *llmtest.Request) llmtest.Turn {
		if r.Attempt == 0 {
			return llmtest.Turn{Fault: &llmtest.Fault{Kind: llmtest.Quota}}
		}
		return anAnswer(r)
	}, heedless(openai(), 2, 3))
	if res := g.run(t); exceptionType(res) != exception.NonZeroAgentExitCodeError || rewardsText(res) != "{'reward': 1.0}" {
		t.Errorf("exception %+v, rewards %s", res.ExceptionInfo, rewardsText(res))
	}
}

// TestGatewayCallThatItsCallerGivesUp: that an answer was not waited for is no failure of the
// model, and what came of it is counted.
func TestGatewayCallThatItsCallerGivesUp(t *testing.T) {
	t.Parallel()
	d := openai()
	long := func(*llmtest.Request) llmtest.Turn { return llmtest.Turn{Text: strings.Repeat("hello ", 4<<20)} }
	g := gatewayBenchOf(t, d, long, func(ctx context.Context, p *fake.Process) (int, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.Env["PROCTOR_MODEL_URL"]+d.path, strings.NewReader(asking("")))
		if err != nil {
			return 0, err
		}
		r.Header.Set("Authorization", "Bearer "+p.Env["PROCTOR_MODEL_KEY"])
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			return 0, err
		}
		return 3, resp.Body.Close() // the connection with it
	})
	if res := g.run(t); exceptionType(res) != exception.NonZeroAgentExitCodeError || rewardsText(res) != "{'reward': 1.0}" {
		t.Errorf("exception %+v, rewards %s", res.ExceptionInfo, rewardsText(res))
	}
	if n := readNotes(t, g.dir).Gateway; n == nil || n.Calls != 1 {
		t.Errorf("notes %+v", n)
	}
}

// TestGatewayAndTheTimeLimit: an agent whose time is up in the middle of a call is judged.
func TestGatewayAndTheTimeLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t, goodTask().with("task.toml", "[agent]\ntimeout_sec = 0.5\n"), fake.Config{Rules: []fake.Rule{
		fake.On(work, heedless(openai(), 1, 0)), rewardRule("reward.txt", "1.0"),
	}})
	g := withGateway(t, b, openai(), func(*llmtest.Request) llmtest.Turn {
		return llmtest.Turn{Fault: &llmtest.Fault{Kind: llmtest.Wait}}
	})
	res := g.run(t)
	if exceptionType(res) != exception.AgentTimeoutError || rewardsText(res) != "{'reward': 1.0}" {
		t.Errorf("exception %+v, rewards %s", res.ExceptionInfo, rewardsText(res))
	}
	if n := readNotes(t, g.dir).AgentKilled; n == nil || n.Reason != "deadline" {
		t.Errorf("notes %+v", n)
	}
}

// TestGatewayFailureOfASilentAgent: what an agent that asked nothing, or was refused here,
// ends with is its own.
func TestGatewayFailureOfASilentAgent(t *testing.T) {
	t.Parallel()
	wrongModel := func(ctx context.Context, p *fake.Process) (int, error) {
		_, err := post(ctx, p.Env["OPENAI_BASE_URL"]+"/chat/completions", p.Env["OPENAI_API_KEY"], `{"model":"larger","messages":[]}`)
		return 3, err
	}
	for name, do := range map[string]fake.Handler{"asks nothing": fake.Exit(3), "asks for another model": wrongModel} {
		g := gatewayBenchOf(t, openai(), nil, do)
		if res := g.run(t); exceptionType(res) != exception.NonZeroAgentExitCodeError || rewardsText(res) != "{'reward': 1.0}" {
			t.Errorf("%s: exception %+v, rewards %s", name, res.ExceptionInfo, rewardsText(res))
		}
		if a := g.counted(); a.Requests != 0 {
			t.Errorf("%s: the server was asked %+v", name, a)
		}
	}
}

// TestGatewayIsClosedOutsideOfTheAgentsTime: calls while the agent is set up, between steps,
// in verifications and by daemons that the agent left are refused, and cost nothing.
func TestGatewayIsClosedOutsideOfTheAgentsTime(t *testing.T) {
	t.Parallel()
	d := openai()
	var mu sync.Mutex
	var statuses []string
	var door, key string
	refused := func(when string) fake.Handler {
		return func(ctx context.Context, _ *fake.Process) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			got, err := post(ctx, door+d.path, key, asking(""))
			statuses = append(statuses, fmt.Sprint(when, " ", got.status, " ", err))
			return 0, nil
		}
	}
	remember := func(_ context.Context, p *fake.Process) (int, error) {
		door, key = p.Env["PROCTOR_MODEL_URL"], p.Env["PROCTOR_MODEL_KEY"]
		return 0, nil
	}
	verified := make(chan struct{})
	asked := make(chan struct{})
	daemon := func(ctx context.Context, p *fake.Process) (int, error) {
		<-verified
		defer close(asked)
		return refused("daemon")(ctx, p)
	}
	b := newBench(t, stepTask(twoSteps, "one", "two").with("steps/two/workdir/setup.sh", ""), fake.Config{Rules: []fake.Rule{
		emptying(), fake.On("get it", remember, refused("set-up")),
		fake.On(work, fake.Each(fake.InOrder(calls(d, 1, ""), fake.Leave(daemon)), calls(d, 1, ""))),
		fake.On("setup.sh", refused("between")),
		fake.On("/tests/test.sh", fake.Each(
			fake.InOrder(refused("verifier"), fake.Write("/logs/verifier/reward.txt", "1"), func(context.Context, *fake.Process) (int, error) {
				close(verified)
				<-asked
				return 0, nil
			}), fake.Write("/logs/verifier/reward.txt", "1"))),
	}})
	g := withGateway(t, b, d, nil)
	g.cfg.Agent.Kwargs.Set("install", value.Str("get it"))
	res := g.run(t)
	want := "[set-up 403 <nil> verifier 403 <nil> daemon 403 <nil> between 403 <nil>]"
	if got := fmt.Sprint(statuses); got != want || rewardsText(res) != "{'reward': 1.0}" {
		t.Errorf("calls were answered %s, want %s; rewards %s", got, want, rewardsText(res))
	}
	if n := g.counted().Requests; n != 2 || readNotes(t, g.dir).Gateway.Calls != 2 {
		t.Errorf("the server was asked %d times", n)
	}
	if got, err := post(t.Context(), door+d.path, key, asking("")); err == nil {
		t.Errorf("after the trial a call is answered: %+v", got)
	}
}

// TestGatewayCutsOffDaemons: a call that something of the agent's makes when the agent ends
// is cut off and counted, and does not hold up the trial, whatever its caller does.
func TestGatewayCutsOffDaemons(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"waits", "sends no more", "reads no more"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, under := gatewayWithDaemon(t, name)
			res := g.run(t)
			if exceptionType(res) != "" || rewardsText(res) != "{'reward': 1.0}" {
				t.Errorf("exception %+v, rewards %s", res.ExceptionInfo, rewardsText(res))
			}
			if n := readNotes(t, g.dir).Gateway; n == nil || n.Calls != under {
				t.Errorf("notes %+v, want %d calls", n, under)
			}
		})
	}
}

// TestGatewayModes: without a gateway commands have the variables as they were given; where
// it has to be, what keeps the agent from it ends the trial.
func TestGatewayModes(t *testing.T) {
	t.Parallel()
	noKey := func(g *gatewayBench) {
		g.cfg.Agent.Env.Set("OPENAI_API_KEY", "")
		g.cfg.Agent.Kwargs.Delete("api_base")
	}
	unknown := func(g *gatewayBench) {
		g.cfg.Agent.ModelName = new("nobody/m")
		g.cfg.Agent.Kwargs.Delete("api_base")
	}
	isDeaf := func(g *gatewayBench) { g.Backend = deaf{g.Backend} }
	noModels := func(g *gatewayBench) { g.Models = nil }
	opener := func(g *gatewayBench) {
		g.Models = llm.OpenerFunc(func(string, llm.Options) (llm.Model, error) { return nil, errors.New("asked") })
	}
	trialBudget := func(g *gatewayBench) { g.Budget.Tokens = 1000 }
	jobBudget := func(g *gatewayBench) { g.Meter = llm.NewMeter(llm.OfJob, llm.Budget{Tokens: 1000}, nil) }
	for name, c := range map[string]struct {
		mode      trial.GatewayMode
		change    []func(*gatewayBench)
		exception string // empty for a trial without a gateway
		says      string // in the log, or in the message
	}{
		"off":                         {trial.GatewayOff, nil, "", ""},
		"off, no key":                 {trial.GatewayOff, []func(*gatewayBench){noKey}, "", ""},
		"auto, no model":              {"", []func(*gatewayBench){func(g *gatewayBench) { g.cfg.Agent.ModelName = nil }}, "", ""},
		"on, no model":                {trial.GatewayOn, []func(*gatewayBench){func(g *gatewayBench) { g.cfg.Agent.ModelName = nil }}, "", ""},
		"auto, no models":             {trial.GatewayAuto, []func(*gatewayBench){noModels}, "", ""},
		"auto, no key":                {trial.GatewayAuto, []func(*gatewayBench){noKey}, "", "have no model gateway: model openai/m: authentication: there is no key: set OPENAI_API_KEY"},
		"no mode, no key":             {"", []func(*gatewayBench){noKey}, "", "have no model gateway"},
		"auto, unknown provider":      {trial.GatewayAuto, []func(*gatewayBench){unknown}, "", `provider "nobody" of model nobody/m is not known`},
		"auto, deaf":                  {trial.GatewayAuto, []func(*gatewayBench){isDeaf}, "", "Warning: this sandbox cannot carry connections"},
		"auto, passes on no calls":    {trial.GatewayAuto, []func(*gatewayBench){opener}, "", "passes on no calls"},
		"on, no key":                  {trial.GatewayOn, []func(*gatewayBench){noKey}, "AuthenticationError", "there is no key: set OPENAI_API_KEY"},
		"on, unknown provider":        {trial.GatewayOn, []func(*gatewayBench){unknown}, exception.ValueError, `provider "nobody"`},
		"on, deaf":                    {trial.GatewayOn, []func(*gatewayBench){isDeaf}, exception.RuntimeError, "letting the agent's commands reach their model"},
		"on, no models":               {trial.GatewayOn, []func(*gatewayBench){noModels}, exception.ValueError, "passes on no calls"},
		"auto, no key, with a budget": {trial.GatewayAuto, []func(*gatewayBench){noKey, trialBudget}, "AuthenticationError", "there is no key"},
		"auto, no key, job's budget":  {trial.GatewayAuto, []func(*gatewayBench){noKey, jobBudget}, "AuthenticationError", "there is no key"},
		"auto, deaf, with a budget":   {trial.GatewayAuto, []func(*gatewayBench){isDeaf, trialBudget}, exception.RuntimeError, "letting the agent's commands reach their model"},
		"auto, unpriced in dollars": {trial.GatewayAuto, []func(*gatewayBench){func(g *gatewayBench) {
			g.Budget.USD = 1
			g.cfg.Agent.Kwargs.Delete("model_info")
		}}, exception.ValueError, "the prices of model openai/m are not known"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ran := false
			g := gatewayBenchOf(t, openai(), nil, func(_ context.Context, p *fake.Process) (int, error) {
				ran = true
				if p.Env["PROCTOR_MODEL_URL"] != "" || p.Env["MY"] != "x "+providersKey || p.Env["OPENAI_BASE_URL"] != "" {
					t.Errorf("the command's variables are %v", p.Env)
				}
				return 0, nil
			})
			g.cfg.Agent.Env.Set("MY", "x "+providersKey)
			g.Gateway = c.mode
			for _, change := range c.change {
				change(g)
			}
			res := g.run(t)
			rewards := "{'reward': 1.0}"
			if c.exception != "" {
				rewards = "no result"
			}
			if exceptionType(res) != c.exception || rewardsText(res) != rewards || ran != (c.exception == "") {
				t.Errorf("exception %+v, rewards %s; the command ran: %v", res.ExceptionInfo, rewardsText(res), ran)
			}
			if log := readText(t, g.dir, "trial.log"); !strings.Contains(log, c.says) || c.says == "" && strings.Contains(log, "gateway") {
				t.Errorf("the log does not say %q:\n%s", c.says, log)
			}
			if n := readNotes(t, g.dir).Gateway; n != nil || g.counted().Requests != 0 {
				t.Errorf("notes %+v, the server was asked %+v", n, g.counted())
			}
		})
	}
}

// TestGatewayThatCannotListen: what goes wrong with a sandbox that can carry connections
// ends the trial, in every mode.
func TestGatewayThatCannotListen(t *testing.T) {
	t.Parallel()
	b := newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{rewardRule("reward.txt", "1.0")}, Before: fake.FailAt(fake.OpListen, 1, nil)})
	res := withGateway(t, b, openai(), nil).run(t)
	if exceptionType(res) != exception.RuntimeError || !strings.Contains(res.ExceptionInfo.Message, "letting the agent's commands reach their model") || res.VerifierResult != nil {
		t.Errorf("exception %+v, rewards %s", res.ExceptionInfo, rewardsText(res))
	}
	if n := b.backend.Live(); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}

// TestGatewayOffline: where the agent does not have the whole network, the provider does not
// reach it in its place.
func TestGatewayOffline(t *testing.T) {
	t.Parallel()
	searching := map[string]string{"openai": `,"web_search_options":{}`, "anthropic": `,"tools":[{"type":"web_search_20250305","name":"web_search"}]`, "gemini": `,"tools":[{"google_search":{}}]`}
	const phase = "[agent]\nnetwork_mode = "
	for name, c := range map[string]struct {
		toml     string
		hardened bool
		allowed  bool
	}{
		"public":                     {"", false, true},
		"no network":                 {phase + "\"no-network\"\n", false, false},
		"an allow list":              {phase + "\"allowlist\"\nallowed_hosts = [\"pypi.org\"]\n", false, false},
		"none in the environment":    {"[environment]\nnetwork_mode = \"no-network\"\n", false, false},
		"public in the agent's time": {"[environment]\nnetwork_mode = \"no-network\"\n[agent]\nnetwork_mode = \"public\"\n", false, true},
		"hardened":                   {"", true, false},
	} {
		for _, d := range dialects() {
			t.Run(name+", "+d.provider, func(t *testing.T) {
				t.Parallel()
				var search, plain reply
				b := newBench(t, goodTask().with("task.toml", c.toml), fake.Config{Rules: []fake.Rule{
					fake.On(work, func(ctx context.Context, p *fake.Process) (_ int, err error) {
						if plain, err = call(ctx, p, d, ""); err == nil {
							search, err = call(ctx, p, d, searching[d.provider])
						}
						return 0, err
					}), rewardRule("reward.txt", "1.0"),
				}})
				b.Hardened = c.hardened
				g := withGateway(t, b, d, nil)
				res := g.run(t)
				wanted, asked := http.StatusForbidden, 1
				if c.allowed {
					wanted, asked = http.StatusOK, 2
				}
				if plain.status != http.StatusOK || search.status != wanted || g.counted().Requests != asked || res.ExceptionInfo != nil {
					t.Errorf("answered %+v and %+v, the server was asked %d times, exception %+v", plain, search, g.counted().Requests, res.ExceptionInfo)
				}
			})
		}
	}
}

// TestGatewayOfACancelledTrial: a trial that is cancelled in the middle of a call ends, and
// leaves nothing behind.
func TestGatewayOfACancelledTrial(t *testing.T) { //nolint:paralleltest // it counts what the process has
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g := gatewayBenchOf(t, openai(), func(*llmtest.Request) llmtest.Turn {
		cancel()
		return llmtest.Turn{Fault: &llmtest.Fault{Kind: llmtest.Wait}}
	}, calls(openai(), 1, ""))
	transport := &http.Transport{DisableKeepAlives: true}
	g.Models.(*llm.Client).HTTP = &http.Client{Transport: transport}
	before := runtime.NumGoroutine()
	res, err := g.Run(ctx, g.cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	if exceptionType(res) != exception.CancelledError || res.VerifierResult != nil {
		t.Errorf("exception %+v, rewards %s", res.ExceptionInfo, rewardsText(res))
	}
	if n := readNotes(t, g.dir).Gateway; n == nil || n.Calls != 1 || n.Uncounted != 1 {
		t.Errorf("notes %+v", n)
	}
	if n := g.backend.Live(); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			buf := make([]byte, 64<<10)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

// recordedCalls runs a trial that makes calls, and returns its result and recording.
func recordedCalls(t *testing.T, d dialect, more string, n int) (*jobdir.TrialResult, []byte) {
	t.Helper()
	g := gatewayBenchOf(t, d, nil, calls(d, n, more))
	res := g.run(t)
	if res.ExceptionInfo != nil {
		t.Fatalf("exception %+v", res.ExceptionInfo)
	}
	return res, []byte(readText(t, g.dir, callsFile))
}

// replayed gives the agent a recording, and a server that must not be asked.
func (g *gatewayBench) replayed(t *testing.T, strict bool, recorded []byte) *gatewayBench {
	t.Helper()
	models := g.Models
	g.replaying(t, strict, recorded)
	commandAgent(work)(&g.cfg)
	g.cfg.Agent.Kwargs.Set("api_base", value.Str(g.base))
	g.Models = models
	return g
}

// TestGatewayReplays: a recording gives an agent the same answers and the same result, and
// asks nobody, without a key; keys that are there all the same are kept from it.
func TestGatewayReplays(t *testing.T) {
	t.Parallel()
	for _, d := range dialects() {
		t.Run(d.provider, func(t *testing.T) {
			t.Parallel()
			first, recorded := recordedCalls(t, d, "", 2)
			for _, key := range []string{providersKey, ""} {
				g := gatewayBenchOf(t, d, nil, func(ctx context.Context, p *fake.Process) (int, error) {
					for name, text := range p.Env {
						if strings.Contains(text, providersKey) {
							t.Errorf("the command has %s=%s", name, text)
						}
					}
					return calls(d, 2, "")(ctx, p)
				}).replayed(t, true, recorded)
				g.cfg.Agent.ModelName = new(d.provider + "/m")
				g.cfg.Agent.Env.Set(d.key, key)
				if key != "" {
					g.cfg.Agent.Env.Set("MY", "x "+key)
				}
				g.Meter = llm.NewMeter(llm.OfJob, llm.Budget{}, nil)
				res := g.run(t)
				if res.ExceptionInfo != nil || rewardsText(res) != "{'reward': 1.0}" || len(g.server.Requests()) != 0 {
					t.Fatalf("exception %+v, rewards %s, %d requests", res.ExceptionInfo, rewardsText(res), len(g.server.Requests()))
				}
				checkUse(t, "replayed", res.AgentResult, llm.Usage{Prompt: 240, Completion: 60, Cached: 40})
				checkUse(t, "recorded", first.AgentResult, llm.Usage{Prompt: 240, Completion: 60, Cached: 40})
				if n := readNotes(t, g.dir); n.ReplayedFrom != "earlier" || len(n.Warnings) != 0 || n.Gateway.Calls != 2 || g.Meter.Spent() != (llm.Spent{}) {
					t.Errorf("notes %+v, %+v; the job's meter has %+v", n, n.Gateway, g.Meter.Spent())
				}
			}
		})
	}
}

// TestGatewayReplayThatDiffers: another request than the recorded one is a warning, or the
// end of the trial, as is a recording that ends too early.
func TestGatewayReplayThatDiffers(t *testing.T) {
	t.Parallel()
	d := openai()
	_, recorded := recordedCalls(t, d, "", 2)
	for name, c := range map[string]struct {
		strict bool
		calls  int
		more   string
		want   string
		says   string
	}{
		"another request":         {false, 2, `,"n":1`, "", "was made with another request"},
		"another request, strict": {true, 2, `,"n":1`, llm.ReplayDivergedError, "was made with another request"},
		"too short":               {false, 3, "", llm.ReplayDivergedError, "recording earlier has no call of model openai/m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gatewayBenchOf(t, d, nil, calls(d, c.calls, c.more), then(c.want == "")).replayed(t, c.strict, recorded)
			g.cfg.Agent.ModelName = new("openai/m")
			if c.want == "" {
				g.cfg.Agent.Kwargs.Set("run", value.Str(work))
			}
			res := g.run(t)
			if exceptionType(res) != c.want || (res.VerifierResult != nil) != (c.want == "") || len(g.server.Requests()) != 0 {
				t.Errorf("exception %+v, rewards %s, %d requests", res.ExceptionInfo, rewardsText(res), len(g.server.Requests()))
			}
			if log := readText(t, g.dir, "trial.log"); !strings.Contains(log, c.says) {
				t.Errorf("the log does not say %q:\n%s", c.says, log)
			}
			if n := readNotes(t, g.dir).AgentKilled; c.want != "" && (n == nil || n.Reason != "model" || !n.ProvenGone) {
				t.Errorf("notes %+v", n)
			}
		})
	}
}

// TestGatewayWithoutARecording: a trial that has no recording calls no model.
func TestGatewayWithoutARecording(t *testing.T) {
	t.Parallel()
	g := gatewayBenchOf(t, openai(), nil, calls(openai(), 1, ""))
	g.Replay = func(jobdir.TrialConfig) (*llm.Replay, error) {
		return nil, exception.New(llm.ReplayDivergedError, "there is none")
	}
	res := g.run(t)
	if exceptionType(res) != llm.ReplayDivergedError || len(g.server.Requests()) != 0 {
		t.Errorf("exception %+v after %d requests", res.ExceptionInfo, len(g.server.Requests()))
	}
	if _, err := os.Stat(filepath.Join(g.dir, callsFile)); err == nil {
		t.Error("there is a recording")
	}
}
