package jobcli

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"

	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/flags"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/providers"
	"github.com/proctor-run/proctor/trial"
)

// ModelFlags are the flags for agents that call a model.
type ModelFlags struct {
	// Gateway says whether commands of agents reach models through this program.
	Gateway trial.GatewayMode
	// PerMinute is how many calls of a model begin within a minute, 0 for no bound.
	PerMinute int
	// Table is a file of limits and prices, see [llm.ParseTable].
	Table string
	// Job and trial budgets, nil for none.
	usd, usdPerTrial       *float64
	tokens, tokensPerTrial *int64
	// Replay is a directory with recordings, see [job.Recordings]; empty calls models.
	Replay string
	// ReplayStrict refuses calls that are not those of the recording.
	ReplayStrict bool
}

// DefineModel defines how models are called.
func DefineModel(fs *pflag.FlagSet, f *ModelFlags) {
	fs.IntVar(&f.PerMinute, "model-rpm", 0, "at most `N` calls of a model per minute, of all trials together (default: as its provider allows)")
	fs.StringVar(&f.Table, "model-table", "", "JSON `file` with limits and prices of models, which count before those that proctor knows")
	fs.StringVar(&f.Replay, "replay-models", "", "call no model: agents get the answers that models gave in a job, or a trial, in this `directory`")
	fs.BoolVar(&f.ReplayStrict, "replay-models-strict", false, "end a trial whose agent asks something else than in the recording, instead of warning")
}

// DefineGateway defines whether commands of agents reach models through this program;
// otherwise is what counts unless it is given.
func DefineGateway(fs *pflag.FlagSet, f *ModelFlags, otherwise trial.GatewayMode) {
	f.Gateway = otherwise
	fs.Var(&gatewayValue{&f.Gateway}, "model-gateway", "let commands of agents reach the model of -m through proctor, which keeps its key, counts tokens "+
		"and holds budgets: `auto` where that can be, on, or off")
}

// gatewayValue is the value of --model-gateway.
type gatewayValue struct{ mode *trial.GatewayMode }

// Set reads a mode.
func (v *gatewayValue) Set(text string) error {
	mode, err := flags.OneOf(text, "a mode", GatewayModes(), nil)
	if err == nil {
		*v.mode = trial.GatewayMode(mode)
	}
	return err
}

// String is the mode.
func (v *gatewayValue) String() string {
	if v.mode == nil {
		return ""
	}
	return string(*v.mode)
}

// Type is shown where the usage names no other word.
func (*gatewayValue) Type() string { return "mode" }

// GatewayModes are the values of --model-gateway.
func GatewayModes() []string {
	return []string{string(trial.GatewayAuto), string(trial.GatewayOn), string(trial.GatewayOff)}
}

// DefineBudgets defines what the models of a job may be used for.
func DefineBudgets(fs *pflag.FlagSet, f *ModelFlags) {
	flags.Optional(fs, &f.usd, dollars, "budget-usd", "", "begin no trial and no call of a model once the job has spent so many `dollars`; a job that is resumed needs it again, and counts what it spent before")
	flags.Optional(fs, &f.tokens, tokens, "budget-tokens", "", "the same as a `number` of tokens, of prompts and answers")
	DefineTrialBudget(fs, f)
}

// DefineTrialBudget defines what the models of a trial may be used for.
func DefineTrialBudget(fs *pflag.FlagSet, f *ModelFlags) {
	flags.Optional(fs, &f.usdPerTrial, dollars, "budget-usd-per-trial", "", "make no call of a model once an attempt at a trial has spent so many `dollars`; its work is verified")
	flags.Optional(fs, &f.tokensPerTrial, tokens, "budget-tokens-per-trial", "", "the same as a `number` of tokens, of prompts and answers")
}

// dollars reads a budget in US dollars.
func dollars(s string) (float64, error) {
	x, err := flags.Float(s)
	if err == nil && (!(x > 0) || math.IsInf(x, 0)) {
		err = fmt.Errorf("%q is not an amount above 0", s)
	}
	return x, err
}

// tokens reads a budget in tokens.
func tokens(s string) (int64, error) {
	n, err := flags.Int(s)
	if err == nil && n <= 0 {
		err = fmt.Errorf("%q is not a number above 0", s)
	}
	return int64(n), err
}

// Budget is that of the job.
func (f *ModelFlags) Budget() llm.Budget { return budget(f.usd, f.tokens) }

// TrialBudget is that of a trial.
func (f *ModelFlags) TrialBudget() llm.Budget { return budget(f.usdPerTrial, f.tokensPerTrial) }

// meter has the budgets.
func (f *ModelFlags) meter() *llm.Meter {
	return llm.NewMeter(llm.OfTrial, f.TrialBudget(), llm.NewMeter(llm.OfJob, f.Budget(), nil))
}

func (f *ModelFlags) bounded() bool { return f.meter().Bounded() }

func budget(usd *float64, tokens *int64) (b llm.Budget) {
	if usd != nil {
		b.USD = *usd
	}
	if tokens != nil {
		b.Tokens = *tokens
	}
	return b
}

// CheckBudgets refuses budgets that cannot be kept: those of agents that call no models
// through the program, and budgets in dollars for models whose prices are not known.
func (p *Program) CheckBudgets(agents []jobdir.AgentConfig, f *ModelFlags) error {
	if !f.bounded() || f.Replay != "" { // what is replayed costs nothing
		return nil
	}
	calls := func(a jobdir.AgentConfig) bool { return trial.CallsModel(p.Agents, a, f.Gateway) }
	if !slices.ContainsFunc(agents, calls) {
		return exitcode.Usagef("a budget is for agents that call models through %s, and none does here", p.Name)
	}
	meter := f.meter()
	for _, a := range agents {
		if !calls(a) {
			continue
		}
		err := trial.CheckPrices(p.Agents, a, p.Lookup, p.Models(f), meter)
		if unpriced, ok := errors.AsType[*llm.UnpricedError](err); ok { // any other is the trials', whose secrets are there
			return exitcode.Usagef("%w", unpriced)
		}
	}
	return nil
}

func (f *ModelFlags) check() error {
	if f.PerMinute < 0 {
		return exitcode.Usagef("--model-rpm is %d, want a number of calls, or 0 for no bound", f.PerMinute)
	}
	return nil
}

// CheckReplay refuses recordings that are not there.
func (f *ModelFlags) CheckReplay() error {
	if f.Replay == "" {
		if f.ReplayStrict {
			return exitcode.Usagef("--replay-models-strict is about the recordings of --replay-models, which is not given")
		}
		return nil
	}
	if info, err := os.Stat(f.Replay); err != nil || !info.IsDir() {
		return exitcode.Usagef("--replay-models: there is no directory %q", f.Replay)
	}
	return nil
}

// Recordings are what trials replay; nil where models are called.
func (f *ModelFlags) Recordings() *job.Recordings {
	if f.Replay == "" {
		return nil
	}
	return &job.Recordings{Dir: f.Replay, Strict: f.ReplayStrict}
}

// Models opens the models of the program's agents: one client for all trials.
func (p *Program) Models(f *ModelFlags) llm.Router {
	client := sync.OnceValues(func() (*llm.Client, error) {
		if err := f.check(); err != nil {
			return nil, err
		}
		table, err := readTable(f.Table)
		return &llm.Client{Dial: providers.Dial, Lookup: p.Lookup, Now: p.Now, Known: table, PerMinute: f.PerMinute}, err
	})
	return models{client}
}

// models is a client that is made when it is first asked for something.
type models struct {
	client func() (*llm.Client, error)
}

// Open opens a model.
func (m models) Open(name string, o llm.Options) (llm.Model, error) {
	c, err := m.client()
	if err != nil {
		return nil, err
	}
	return c.Open(name, o)
}

// Route finds the way to a model.
func (m models) Route(name string, o llm.Options) (*llm.Route, error) {
	c, err := m.client()
	if err != nil {
		return nil, err
	}
	return c.Route(name, o)
}

// maxTable bounds a table of models, in bytes.
const maxTable = 64 << 20

func readTable(file string) (*llm.Table, error) {
	if file == "" {
		return nil, nil
	}
	data, err := bounded.ReadFile(file, maxTable)
	if err != nil {
		return nil, exitcode.Usagef("--model-table: %w", err)
	}
	t, err := llm.ParseTable(data)
	if err != nil {
		return nil, exitcode.Usagef("--model-table %s: %w", file, err)
	}
	return t, nil
}

// CheckModels refuses models that cannot be opened, before anything is done.
func (p *Program) CheckModels(agents []jobdir.AgentConfig, f *ModelFlags) error {
	if f.Replay != "" { // no model is opened, and no key needed
		return p.checkReplayed(agents, f)
	}
	models, mode := p.Models(f), f.Gateway
	if f.bounded() && mode != trial.GatewayOff { // trials have it so
		mode = trial.GatewayOn
	}
	for _, a := range agents {
		if err := trial.CheckModel(p.Agents, a, p.Lookup, models, mode); err != nil {
			return exitcode.Usagef("%w", err)
		}
	}
	return nil
}

// checkReplayed refuses agents whose commands would call models all the same.
func (p *Program) checkReplayed(agents []jobdir.AgentConfig, f *ModelFlags) error {
	for _, a := range agents {
		if trial.CallsModel(p.Agents, a, trial.GatewayOn) && !trial.CallsModel(p.Agents, a, f.Gateway) {
			return exitcode.Usagef("--replay-models answers what goes through %s: with --model-gateway off the commands of agent %s call their model themselves", p.Name, *a.Name)
		}
	}
	return nil
}
