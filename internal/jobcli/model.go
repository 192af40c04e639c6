package jobcli

import (
	"os"
	"sync"

	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/providers"
	"github.com/proctor-run/proctor/trial"
)

// ModelFlags are the flags for agents that call a model themselves.
type ModelFlags struct {
	// PerMinute is how many calls of a model begin within a minute, 0 for no bound.
	PerMinute int
	// Table is a file of limits and prices, see [llm.ParseTable].
	Table string
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
func (p *Program) Models(f *ModelFlags) llm.Opener {
	client := sync.OnceValues(func() (*llm.Client, error) {
		if err := f.check(); err != nil {
			return nil, err
		}
		table, err := readTable(f.Table)
		return &llm.Client{Dial: providers.Dial, Lookup: p.Lookup, Now: p.Now, Known: table, PerMinute: f.PerMinute}, err
	})
	return llm.OpenerFunc(func(name string, o llm.Options) (llm.Model, error) {
		c, err := client()
		if err != nil {
			return nil, err
		}
		return c.Open(name, o)
	})
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

// checkModels refuses models that cannot be opened, before anything is done.
func (p *Program) checkModels(agents []jobdir.AgentConfig, f *ModelFlags) error {
	if f.Replay != "" {
		return nil // no model is opened, and no key needed
	}
	models := p.Models(f)
	for _, a := range agents {
		if err := trial.CheckModel(p.Agents, a, p.Lookup, models); err != nil {
			return exitcode.Usagef("%w", err)
		}
	}
	return nil
}
