package job

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/llm"
)

// Recordings are what models answered the agents of earlier trials, for those of a [Runner].
//
// A trial gets the recording of a finished trial of the same task, agent and model, as the
// configurations have them. Of several the one whose trial started first is taken first, and
// each goes to one trial, which keeps it when it is retried. When a job is resumed, what the
// trials that it keeps were given is not given again: their notes have it.
//
// Dir is searched when the first trial asks.
type Recordings struct {
	// Dir is the directory of a job, or of one trial.
	Dir string
	// Strict is that of [llm.Replay].
	Strict bool

	mu    sync.Mutex      // guards what follows
	used  map[string]bool // names of recordings that are not given
	read  bool
	err   error
	free  map[string][]recording // by recordingKey, in their order
	given map[string]recording   // by the name of the trial that has it
}

// recording is where the recording of one trial is.
type recording struct {
	dir, name string
	started   int64
	files     []string // below dir, in the order in which they were written
}

// Replay takes the recording for a trial.
func (r *Recordings) Replay(cfg jobdir.TrialConfig) (*llm.Replay, error) {
	found, err := r.take(cfg)
	if err != nil {
		return nil, err
	}
	parsed, err := found.load()
	if err != nil {
		return nil, exception.Errorf(llm.ReplayDivergedError, "recording %s cannot be replayed: %w", found.name, err)
	}
	return &llm.Replay{Recording: parsed, Name: found.name, Strict: r.Strict}, nil
}

// ErrNotReplayed is the error of a job some of whose trials called models, and whose others
// are to replay recordings.
var ErrNotReplayed = errors.New("trials of this job called models: it cannot go on with recorded answers")

// keepReplaying lets a job that was started with recordings go on with them, so that none
// calls models in one trial and replays in another.
func (r *Runner) keepReplaying(p *Prepared) error {
	if !p.Begun {
		return nil
	}
	before, _, err := journal.Before(p.Config.Dir())
	used := p.replayed()
	switch {
	case err != nil && r.Recordings == nil && len(used) > 0:
		return fmt.Errorf("asking which recordings the job replays: %w", err)
	case before.ReplayModels != "" && r.Recordings == nil:
		r.Recordings = &Recordings{Dir: before.ReplayModels, Strict: before.ReplayStrict}
	case before.ReplayModels == "" && r.Recordings != nil && len(p.Existing) > 0 && len(used) == 0:
		return ErrNotReplayed
	}
	if r.Recordings != nil {
		r.Recordings.mu.Lock()
		defer r.Recordings.mu.Unlock()
		r.Recordings.used = used
	}
	return nil
}

func (r *Recordings) take(cfg jobdir.TrialConfig) (recording, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.read {
		r.read, r.err = true, r.find()
	}
	if r.err != nil {
		return recording{}, r.err
	}
	if had, ok := r.given[cfg.TrialName]; ok {
		return had, nil
	}
	key := recordingKey(cfg)
	if len(r.free[key]) == 0 {
		return recording{}, exception.Errorf(llm.ReplayDivergedError, "%s has no recording, or none that is left, of task %q by agent %q with model %q",
			r.Dir, cfg.Task.BaseName(), agentOf(cfg), textOf(cfg.Agent.ModelName))
	}
	found := r.free[key][0]
	r.free[key] = r.free[key][1:]
	r.given[cfg.TrialName] = found
	return found, nil
}

// recordingKey is what a recording and the trial that gets it have in common.
func recordingKey(cfg jobdir.TrialConfig) string {
	t := cfg.Task
	return strings.Join([]string{textOf(t.Path), textOf(t.GitURL), textOf(t.GitCommitID), textOf(t.Name), agentOf(cfg), textOf(cfg.Agent.ModelName)}, "\x00")
}

func agentOf(cfg jobdir.TrialConfig) string {
	return cmp.Or(textOf(cfg.Agent.Name), textOf(cfg.Agent.ImportPath))
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// find finds all recordings.
func (r *Recordings) find() error {
	r.free, r.given = map[string][]recording{}, map[string]recording{}
	root, err := bounded.OpenDir(r.Dir)
	if err != nil {
		return exception.Errorf(llm.ReplayDivergedError, "looking for recordings: %w", err)
	}
	defer func() { _ = root.Close() }()
	if r.add(".") {
		return nil
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return exception.Errorf(llm.ReplayDivergedError, "looking for recordings: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			r.add(e.Name())
		}
	}
	for _, list := range r.free {
		slices.SortFunc(list, func(a, b recording) int {
			return cmp.Or(cmp.Compare(a.started, b.started), strings.Compare(a.name, b.name))
		})
	}
	return nil
}

// add adds the recording of a trial, by its directory below Dir, and reports whether there
// is a trial that has finished.
func (r *Recordings) add(name string) bool {
	dir := filepath.Join(r.Dir, name)
	data, err := jobdir.ReadTrialFile(dir, scan.ResultFile)
	if err != nil {
		return false
	}
	res, err := jobdir.ParseTrialResult(data)
	if err != nil {
		return false
	}
	found := recording{dir: dir, name: filepath.Base(dir)}
	if abs, err := filepath.Abs(dir); err == nil {
		found.name = filepath.Base(abs)
	}
	if res.StartedAt != nil {
		found.started = res.StartedAt.In(time.UTC).UnixMicro()
	}
	for _, step := range res.StepResults {
		found.look(path.Join("steps", step.StepName, "agent", jobdir.ModelCallsFile))
	}
	found.look(path.Join("agent", jobdir.ModelCallsFile))
	if len(found.files) > 0 && !r.used[found.name] {
		key := recordingKey(res.Config)
		r.free[key] = append(r.free[key], found)
	}
	return true
}

// look adds a file of the recording, if it is there.
func (r *recording) look(name string) {
	name = filepath.FromSlash(name)
	if _, err := os.Lstat(filepath.Join(r.dir, name)); err == nil && filepath.IsLocal(name) {
		r.files = append(r.files, name)
	}
}

// load reads the recording. What stands in the place of a file may have been put there by
// somebody else: no link is followed out of the trial.
func (r *recording) load() (*llm.Recording, error) {
	var all []byte
	for _, name := range r.files {
		data, err := bounded.ReadIn(r.dir, name, jobdir.MaxModelCalls)
		if err != nil {
			return nil, fmt.Errorf("reading a recording: %w", err)
		}
		if all = append(all, data[:bytes.LastIndexByte(data, '\n')+1]...); len(all) > jobdir.MaxModelCalls {
			return nil, errors.New("it is too long")
		}
	}
	return llm.ParseRecording(all)
}

// replayed are the names of the recordings that finished trials of a job were given.
func (p *Prepared) replayed() map[string]bool {
	names := map[string]bool{}
	for _, r := range p.Existing {
		if notes, err := jobdir.ReadNotes(filepath.Join(p.Config.Dir(), r.TrialName)); err == nil && notes.ReplayedFrom != "" {
			names[notes.ReplayedFrom] = true
		}
	}
	return names
}
