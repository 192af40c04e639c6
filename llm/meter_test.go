package llm_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/llm"
)

// priced is a model whose every call uses the same.
type priced struct {
	info   llm.Info
	answer llm.Response
	err    error
	calls  atomic.Int64
}

func (p *priced) Info() llm.Info { return p.info }

func (p *priced) Complete(context.Context, *llm.Request) (*llm.Response, error) {
	p.calls.Add(1)
	if p.err != nil {
		return nil, p.err
	}
	return &p.answer, nil
}

var cheap = &llm.Prices{Input: 0.001, Output: 0.01}

func through(t interface{ Fatal(...any) }, m *llm.Meter, p llm.Model) llm.Model {
	opened, err := m.Wrap(llm.OpenerFunc(func(string, llm.Options) (llm.Model, error) { return p, nil })).Open("a/b", llm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// TestMeterRefuses: calls are refused from the one on that finds a budget used up, under
// the name that results have, and the message says which budget and how much.
func TestMeterRefuses(t *testing.T) {
	t.Parallel()
	usage := &llm.Usage{Prompt: 90, Cached: 40, Completion: 10}
	for _, c := range []struct {
		name       string
		trial, job llm.Budget
		cost       float64
		calls      int64
		want       string
	}{
		{"no budget", llm.Budget{}, llm.Budget{}, 1, 20, ""},
		{"tokens of the trial", llm.Budget{Tokens: 250}, llm.Budget{}, 1, 3, "the budget of the trial is used up: 300 of 250 tokens spent"},
		{"to the token", llm.Budget{Tokens: 300}, llm.Budget{}, 1, 3, "the budget of the trial is used up: 300 of 300 tokens spent"},
		{"dollars of the trial", llm.Budget{USD: 0.05}, llm.Budget{USD: 9}, 0.0171, 3, "the budget of the trial is used up: $0.0513 of $0.05 spent"},
		{"dollars of the job", llm.Budget{USD: 9}, llm.Budget{USD: 1.5}, 1, 2, "the budget of the job is used up: $2.00 of $1.50 spent"},
		{"both at once", llm.Budget{USD: 1.5, Tokens: 150}, llm.Budget{}, 1, 2, "the budget of the trial is used up: $2.00 of $1.50 and 200 of 150 tokens spent"},
		{"the first one", llm.Budget{USD: 100, Tokens: 150}, llm.Budget{Tokens: 1000}, 1, 2, "the budget of the trial is used up: 200 of 150 tokens spent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &priced{info: llm.Info{Prices: cheap}, answer: llm.Response{Usage: usage, Cost: &c.cost}}
			job := llm.NewMeter(llm.OfJob, c.job, nil)
			trial := llm.NewMeter(llm.OfTrial, c.trial, job)
			m := through(t, trial, p)
			got := ""
			for range 20 {
				if _, err := m.Complete(t.Context(), &llm.Request{}); err != nil {
					got = err.Error()
					if refused, ok := errors.AsType[*llm.BudgetError](err); !ok || exception.TypeOf(err) != exception.BudgetExceededError || refused.Spent.Calls != c.calls {
						t.Errorf("error %#v", err)
					}
				}
			}
			if got != c.want || p.calls.Load() != c.calls {
				t.Errorf("%q after %d calls, want %q after %d", got, p.calls.Load(), c.want, c.calls)
			}
			for _, meter := range []*llm.Meter{trial, job} {
				if s := meter.Spent(); s.Calls != c.calls || s.Prompt != 90*c.calls || s.Cached != 40*c.calls || s.Completion != 10*c.calls || s.Tokens() != 100*c.calls {
					t.Errorf("spent %+v", s)
				}
			}
		})
	}
}

// TestMeterUnknown: what a provider
// does not tell, or tells wrong, is estimated; calls that fail are not counted.
func TestMeterUnknown(t *testing.T) {
	t.Parallel()
	req := &llm.Request{Messages: []llm.Message{llm.TextMessage(llm.User, strings.Repeat("a", 400))}, Tools: []llm.ToolSpec{{Name: "1234"}}}
	answer := llm.TextMessage(llm.Assistant, strings.Repeat("b", 40))
	for _, c := range []struct {
		name   string
		prices *llm.Prices
		usage  *llm.Usage
		cost   *float64
		want   llm.Spent
	}{
		{"a usage", cheap, &llm.Usage{Prompt: 1, Completion: 1}, nil, llm.Spent{Prompt: 1, Completion: 1, USD: 0.011}},
		{"no usage", cheap, nil, nil, llm.Spent{Prompt: 101, Completion: 10, USD: 0.201, Uncounted: 1}},
		{"no usage, but a cost", nil, nil, new(0.5), llm.Spent{Prompt: 101, Completion: 10, USD: 0.5, Uncounted: 1}},
		{"no price", nil, &llm.Usage{Prompt: 1, Completion: 1}, nil, llm.Spent{Prompt: 1, Completion: 1, Unpriced: 1}},
		{"a usage below 0", cheap, &llm.Usage{Prompt: -1 << 50, Completion: 1}, new(-5.0), llm.Spent{Prompt: 101, Completion: 10, USD: 0.201, Uncounted: 1}},
		{"a usage without end", cheap, &llm.Usage{Prompt: math.MaxInt64, Completion: 1}, nil, llm.Spent{Prompt: 101, Completion: 10, USD: 0.201, Uncounted: 1}},
		{"more cached than there was", cheap, &llm.Usage{Prompt: 1, Cached: 1000}, nil, llm.Spent{Prompt: 101, Completion: 10, USD: 0.201, Uncounted: 1}},
		{"a cost below 0", cheap, &llm.Usage{Prompt: 1, Completion: 1}, new(-1.0), llm.Spent{Prompt: 1, Completion: 1, USD: 0.011}},
		{"a cost that is none", cheap, &llm.Usage{Prompt: 1, Completion: 1}, new(math.NaN()), llm.Spent{Prompt: 1, Completion: 1, USD: 0.011}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &priced{info: llm.Info{Prices: c.prices}, answer: llm.Response{Message: answer, Usage: c.usage, Cost: c.cost}}
			meter := llm.NewMeter(llm.OfTrial, llm.Budget{Tokens: 1 << 50}, nil)
			m := through(t, meter, p)
			if _, err := m.Complete(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			p.err = &llm.Error{Kind: llm.Transient}
			if _, err := m.Complete(t.Context(), req); err == nil {
				t.Fatal("no error")
			}
			got := meter.Spent()
			c.want.Calls = 1
			if math.Abs(got.USD-c.want.USD) > 1e-9 {
				t.Errorf("cost %g, want %g", got.USD, c.want.USD)
			}
			if got.USD = c.want.USD; got != c.want {
				t.Errorf("spent %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestMeterChargesAlike: a call that went another way counts as one through a model.
func TestMeterChargesAlike(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.OneOf(rapid.Int64Range(-2, 100), rapid.Int64())
		answer := llm.Response{
			Message: llm.TextMessage(llm.Assistant, strings.Repeat("b", rapid.IntRange(0, 100).Draw(rt, "answer"))),
			Usage: draw(rt, "usage", func() llm.Usage {
				return llm.Usage{Prompt: n.Draw(rt, "prompt"), Completion: n.Draw(rt, "completion"), Cached: n.Draw(rt, "cached")}
			}),
			Cost: draw(rt, "cost", func() float64 { return rapid.SampledFrom([]float64{-1, 0, 0.5, 1e30, math.NaN()}).Draw(rt, "dollars") }),
		}
		prices := rapid.SampledFrom([]*llm.Prices{nil, cheap}).Draw(rt, "prices")
		prompt := strings.Repeat("a", rapid.IntRange(0, 100).Draw(rt, "prompt"))
		job := llm.NewMeter(llm.OfJob, llm.Budget{}, nil)
		wrapped, charged := llm.NewMeter(llm.OfTrial, llm.Budget{}, nil), llm.NewMeter(llm.OfTrial, llm.Budget{Tokens: 1}, job)
		m := through(rt, wrapped, &priced{info: llm.Info{Prices: prices}, answer: answer})
		if _, err := m.Complete(t.Context(), &llm.Request{Messages: []llm.Message{llm.TextMessage(llm.User, prompt)}}); err != nil {
			rt.Fatal(err)
		}
		charged.Charge(prices, answer.Usage, answer.Cost, int64(len(prompt)), int64(len(answer.Message.Text())))
		if wrapped.Spent() != charged.Spent() || job.Spent() != charged.Spent() {
			rt.Fatalf("charged %+v, the job %+v, want %+v", charged.Spent(), job.Spent(), wrapped.Spent())
		}
		if used := charged.Spent().Tokens() > 0; used != (charged.Refuse() != nil) {
			rt.Fatalf("spent %+v, then %v", charged.Spent(), charged.Refuse())
		}
	})
	meter := llm.NewMeter(llm.OfTrial, llm.Budget{}, nil)
	meter.Charge(cheap, nil, nil, -400, 40)
	if got := meter.Spent(); got.Prompt != 0 || got.Completion != 10 || got.Uncounted != 1 {
		t.Errorf("spent %+v", got)
	}
}

// TestMeterRefusesOtherWays: whoever makes calls another way is told what a model that is
// wrapped would be.
func TestMeterRefusesOtherWays(t *testing.T) {
	t.Parallel()
	job := llm.NewMeter(llm.OfJob, llm.Budget{USD: 1}, nil)
	trial := llm.NewMeter(llm.OfTrial, llm.Budget{}, job)
	if err := errors.Join(trial.Refuse(), trial.CheckPrices("a/b", cheap), llm.NewMeter(llm.OfTrial, llm.Budget{Tokens: 5}, nil).CheckPrices("a/b", nil)); err != nil {
		t.Error(err)
	}
	if unpriced, ok := errors.AsType[*llm.UnpricedError](trial.CheckPrices("a/b", nil)); !ok || unpriced.Model != "a/b" {
		t.Errorf("error %v", unpriced)
	}
	trial.Charge(nil, nil, new(1.5), 4, 4)
	if over, ok := errors.AsType[*llm.BudgetError](trial.Refuse()); !ok || over.Of != llm.OfJob || over.Spent.Uncounted != 1 {
		t.Errorf("error %v", over)
	}
}

// TestMeterWantsPrices: a budget in dollars opens no model whose prices are not known, also
// where it is the job's.
func TestMeterWantsPrices(t *testing.T) {
	t.Parallel()
	opener := llm.OpenerFunc(func(string, llm.Options) (llm.Model, error) { return &priced{}, nil })
	job := llm.NewMeter(llm.OfJob, llm.Budget{USD: 1}, nil)
	_, err := llm.NewMeter(llm.OfTrial, llm.Budget{Tokens: 5}, job).Wrap(opener).Open("mine/m", llm.Options{})
	if exception.TypeOf(err) != exception.ValueError || !strings.Contains(err.Error(), "mine/m") || !strings.Contains(err.Error(), "model_info") || !strings.Contains(err.Error(), "--budget-tokens") {
		t.Errorf("error %v", err)
	}
	if _, err := llm.NewMeter(llm.OfTrial, llm.Budget{Tokens: 5}, nil).Wrap(opener).Open("mine/m", llm.Options{}); err != nil {
		t.Errorf("with a budget in tokens: %v", err)
	}
	failing := llm.OpenerFunc(func(string, llm.Options) (llm.Model, error) { return nil, &llm.Error{Kind: llm.Auth} })
	if _, err := job.Wrap(failing).Open("a/b", llm.Options{}); exception.TypeOf(err) != "AuthenticationError" {
		t.Errorf("error %v", err)
	}
}

// TestMeterCountsEarlier: what was used before counts, and may use a budget up.
func TestMeterCountsEarlier(t *testing.T) {
	t.Parallel()
	job := llm.NewMeter(llm.OfJob, llm.Budget{Tokens: 100}, nil)
	job.Add(llm.Spent{Prompt: 60, Completion: 39})
	select {
	case <-job.UsedUp():
		t.Fatal("one token is left")
	default:
	}
	trial := llm.NewMeter(llm.OfTrial, llm.Budget{}, job)
	trial.Add(llm.Spent{Prompt: math.MaxInt64 / 2})
	trial.Add(llm.Spent{Prompt: math.MaxInt64 / 2}) // does not begin anew below 0
	<-job.UsedUp()
	if job.Exceeded() == nil || trial.Exceeded() != nil {
		t.Errorf("job %v, trial %v", job.Exceeded(), trial.Exceeded())
	}
	p := &priced{}
	if _, err := through(t, trial, p).Complete(t.Context(), &llm.Request{}); exception.TypeOf(err) != exception.BudgetExceededError || p.calls.Load() != 0 {
		t.Errorf("error %v after %d calls", err, p.calls.Load())
	}
}

// TestMeterIsLateByOneCall: with n callers at once a budget is exceeded by at most one call
// of each, whatever their calls use, and nobody calls any more afterwards.
func TestMeterIsLateByOneCall(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		budget := llm.Budget{Tokens: rapid.Int64Range(1, 2000).Draw(rt, "budget")}
		sizes := rapid.SliceOfN(rapid.Int64Range(1, 100), 1, 8).Draw(rt, "tokens of each caller's calls")
		ofTrial := rapid.Bool().Draw(rt, "of the trial")
		shared := llm.NewMeter(llm.OfJob, budget, nil)
		if ofTrial {
			shared = llm.NewMeter(llm.OfTrial, budget, llm.NewMeter(llm.OfJob, llm.Budget{}, nil))
		}
		var callers sync.WaitGroup
		for _, size := range sizes {
			callers.Go(func() {
				own := shared
				if !ofTrial {
					own = llm.NewMeter(llm.OfTrial, llm.Budget{}, shared)
				}
				m := through(rt, own, &priced{answer: llm.Response{Usage: &llm.Usage{Prompt: size}}})
				for {
					if _, err := m.Complete(t.Context(), &llm.Request{}); err != nil {
						return
					}
				}
			})
		}
		callers.Wait()
		most := budget.Tokens - 1
		for _, size := range sizes {
			most += size
		}
		if spent := shared.Spent().Tokens(); spent < budget.Tokens || spent > most {
			rt.Fatalf("%d tokens were spent, want %d to %d", spent, budget.Tokens, most)
		}
		<-shared.UsedUp()
	})
}

func TestSpentText(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]llm.Spent{
		"":                {},
		"$0.42":           {Calls: 2, Prompt: 5, USD: 0.42},
		"12 tokens":       {Calls: 2, Prompt: 5, Completion: 7, USD: 0.42, Unpriced: 1},
		"about 12 tokens": {Calls: 2, Prompt: 5, Completion: 7, Uncounted: 1, Unpriced: 1},
	} {
		if got := s.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	estimated := &llm.BudgetError{Of: llm.OfTrial, Budget: llm.Budget{Tokens: 5}, Spent: llm.Spent{Prompt: 7, Uncounted: 1}}
	if got := estimated.Error(); got != "the budget of the trial is used up: about 7 of 5 tokens spent" {
		t.Errorf("%q", got)
	}
}

func TestDollars(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{0: "$0.00", 12.345: "$12.35", 1: "$1.00", 0.42: "$0.42", 0.0042: "$0.0042", 0.05128: "$0.0513", 0.1: "$0.10", 1e-7: "$0.0000001"} {
		if got := llm.Dollars(x); got != want {
			t.Errorf("%g: %s, want %s", x, got, want)
		}
	}
}

// TestBelievable: numbers that cannot be right are not known, and with a usage goes the
// cost that may have been made of it.
func TestBelievable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		usage         llm.Usage
		cost          float64
		counted, paid bool
	}{
		{llm.Usage{Prompt: 3, Completion: 2, Cached: 1, CacheWrite: 2}, 0.5, true, true},
		{llm.Usage{Prompt: 3, Completion: -2}, 0.5, false, false},
		{llm.Usage{Prompt: 3, Cached: 2, CacheWrite: 2}, 0.5, false, false},
		{llm.Usage{Prompt: 1 << 41}, 0.5, false, false},
		{llm.Usage{Prompt: 3}, -0.5, true, false},
		{llm.Usage{Prompt: 3}, math.NaN(), true, false},
		{llm.Usage{Prompt: 3}, math.Inf(1), true, false},
	} {
		given := &llm.Response{Usage: &c.usage, Cost: &c.cost}
		got := given.Believable()
		if (got.Usage != nil) != c.counted || (got.Cost != nil) != c.paid || given.Usage == nil || given.Cost == nil {
			t.Errorf("%+v, %v: usage %v, cost %v", c.usage, c.cost, got.Usage, got.Cost)
		}
	}
}
