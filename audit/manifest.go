package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// ManifestSchema names the format of manifests.
const ManifestSchema = "proctor-audit-v1"

// Manifest says what a job's directory holds, by digests: signed, it is what the score can
// be held to by whoever gets the directory. Of the same directory it is the same text,
// whenever and wherever it is made by the same proctor. Fields may be added.
type Manifest struct {
	// Schema is ManifestSchema.
	Schema string `json:"schema"`
	// Proctor is the version that wrote the manifest.
	Proctor string   `json:"proctor"`
	Job     JobEntry `json:"job"`
	// ResultLine is what consumers of the job look for.
	ResultLine string `json:"result_line"`
	// Tasks, Agents and Images are what the trials ran with, each once, sorted.
	Tasks  []TaskEntry  `json:"tasks"`
	Agents []AgentEntry `json:"agents"`
	Images []string     `json:"images"`
	// Files of the job itself, by name.
	Files map[string]jobdir.FileDigest `json:"files"`
	// Trials by the names of their directories, sorted.
	Trials []TrialEntry `json:"trials"`
	// Findings are those of the check that the manifest was made by, as text.
	Findings []string `json:"findings"`
}

// JobEntry says which job it is.
type JobEntry struct {
	ID         string `json:"id"`
	StartedAt  string `json:"started_at"`
	FinishedAt string `json:"finished_at,omitempty"` // empty while it has not
	Planned    int    `json:"n_trials"`
	// Versions of proctor ran it, in order; empty for a job of Harbor.
	Versions []string `json:"proctor_versions,omitempty"`
}

// TaskEntry pins a task.
type TaskEntry struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // content hash, as in the lock
}

// AgentEntry says what an agent was.
type AgentEntry struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Model   string `json:"model,omitempty"`
	// Digest is that of the agent's code, where that is files of the machine that ran it.
	Digest string `json:"digest,omitempty"`
	// Skills by their digests.
	Skills []string `json:"skills,omitempty"`
}

// TrialEntry says what a trial's directory holds.
type TrialEntry struct {
	Trial string `json:"trial"`
	Task  string `json:"task"`
	// Rewards as result.json has them, null where there are none.
	Rewards   json.RawMessage `json:"rewards"`
	Exception string          `json:"exception,omitempty"`
	// Files in the directory, by name, and the digests of the directories in it:
	// SHA-256 of a line per entry, sorted by path, of its path, a NUL and the SHA-256 of
	// its content, or what else than a file it is.
	Files map[string]jobdir.FileDigest `json:"files"`
	Trees map[string]string            `json:"trees"`
}

// ParseManifest reads a manifest. Errors say what is wrong with it.
func ParseManifest(data []byte) (*Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	if m.Schema != ManifestSchema {
		return nil, fmt.Errorf("reading the manifest: its schema is %q, want %q", m.Schema, ManifestSchema)
	}
	return &m, nil
}

// AppendJSON appends the text of the manifest.
func (m *Manifest) AppendJSON(dst []byte) ([]byte, error) {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return dst, fmt.Errorf("writing the manifest: %w", err)
	}
	return append(append(dst, data...), '\n'), nil
}

// manifest makes that of the directory, with what was found until now.
func (c *check) manifest(ctx context.Context) (*Manifest, error) {
	m := &Manifest{Schema: ManifestSchema, Proctor: version.Current().ID(), Images: []string{}, Trials: []TrialEntry{}, Findings: []string{}}
	for _, f := range c.Findings {
		m.Findings = append(m.Findings, f.String())
	}
	c.describeJob(m)
	c.describeInputs(m)
	m.Files = map[string]jobdir.FileDigest{}
	h := hasher{ctx: ctx}
	h.directory(c.dir, m.Files, nil)
	delete(m.Files, jobdir.GuardFile)
	for i := range c.trials {
		if t := &c.trials[i]; t.result != nil {
			m.Trials = append(m.Trials, c.describeTrial(&h, t))
		}
	}
	slices.SortFunc(m.Trials, func(a, b TrialEntry) int { return strings.Compare(a.Trial, b.Trial) })
	if ctx.Err() != nil {
		return nil, fmt.Errorf("reading %q: %w", c.dir, context.Cause(ctx))
	}
	for _, text := range h.failed {
		c.unchecked("the content of %s", text)
	}
	return m, nil
}

func (c *check) describeJob(m *Manifest) {
	if data, err := jobdir.ReadJobFile(c.dir, scan.ResultFile); err == nil {
		if line, err := outcome.Explain(data).Outcome.Line(); err == nil {
			m.ResultLine = line
		}
	}
	if r := c.result; r != nil {
		m.Job = JobEntry{ID: r.ID.String(), StartedAt: r.StartedAt.String(), Planned: r.NTotalTrials}
		if r.FinishedAt != nil {
			m.Job.FinishedAt = r.FinishedAt.String()
		}
	}
	if c.state != nil {
		for _, run := range c.state.Runs {
			m.Job.Versions = append(m.Job.Versions, run.Start.Version)
		}
	}
}

// describeInputs lists what trials ran with.
func (c *check) describeInputs(m *Manifest) {
	agents := map[string]AgentEntry{}
	for i := range c.trials {
		t := &c.trials[i]
		if t.result == nil {
			continue
		}
		a := AgentEntry{Name: t.result.AgentInfo.Name, Version: t.result.AgentInfo.Version}
		if info := t.result.AgentInfo.ModelInfo; info != nil {
			a.Model = info.Name
			if info.Provider != nil {
				a.Model = *info.Provider + "/" + info.Name
			}
		}
		a.Skills = c.skills(t.result)
		if t.notes != nil {
			a.Digest = t.notes.AgentDigest
			if t.notes.ImageDigest != "" {
				m.Images = append(m.Images, t.notes.ImageDigest)
			}
		}
		agents[fmt.Sprintf("%q", []any{a})] = a
	}
	m.Agents = sorted(agents)
	slices.Sort(m.Images)
	m.Images = slices.Compact(m.Images)
	tasks := map[string]TaskEntry{}
	if c.lock != nil {
		for i := range c.lock.Trials {
			t := TaskEntry{Name: c.lock.Trials[i].Task.Name, Digest: c.lock.Trials[i].Task.Digest}
			tasks[t.Name+"\x00"+t.Digest] = t
		}
	}
	m.Tasks = sorted(tasks)
}

// skills are the digests of the skills that the lock plans a trial with.
func (c *check) skills(r *jobdir.TrialResult) []string {
	if c.lock == nil || len(r.Config.Agent.Skills) == 0 {
		return nil
	}
	key := jobdir.PlannedAs(r.Config).PlanKey()
	for i := range c.lock.Trials {
		if t := &c.lock.Trials[i]; t.PlanKey() == key {
			var list []string
			for _, s := range t.Skills {
				list = append(list, s.Name+" "+s.Digest)
			}
			return list
		}
	}
	return nil
}

func sorted[T any](entries map[string]T) []T {
	keys := make([]string, 0, len(entries))
	for key := range entries {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	list := make([]T, len(keys))
	for i, key := range keys {
		list[i] = entries[key]
	}
	return list
}

func (c *check) describeTrial(h *hasher, t *trialFiles) TrialEntry {
	rec := jobdir.RecordOf(t.result)
	e := TrialEntry{
		Trial: t.name, Task: rec.TaskName, Exception: rec.ExceptionType, Rewards: rewardsJSON(rec.Rewards),
		Files: map[string]jobdir.FileDigest{}, Trees: map[string]string{},
	}
	h.directory(filepath.Join(c.dir, t.name), e.Files, e.Trees)
	return e
}

func rewardsJSON(r *reward.Rewards) json.RawMessage {
	if r == nil {
		return json.RawMessage("null")
	}
	return value.AppendPydantic(nil, r.Object(), 0)
}

// hasher makes digests of what is in directories that may be anybody's. No link is
// followed.
type hasher struct {
	ctx    context.Context //nolint:containedctx // of one manifest
	failed []string
}

// maxFailed bounds what cannot be read and is named.
const maxFailed = 20

func (h *hasher) fail(name string, err error) {
	if len(h.failed) < maxFailed {
		h.failed = append(h.failed, fmt.Sprintf("%q: %s", name, exception.PlainText(err)))
	}
}

// directory makes the digests of the files of a directory, and, unless trees is nil, of
// the directories in it.
func (h *hasher) directory(dir string, files map[string]jobdir.FileDigest, trees map[string]string) {
	lines := map[string][]string{} // by the first element of their paths
	bounded.Walk(dir, func(p bounded.Place, e fs.DirEntry) error {
		if h.ctx.Err() != nil {
			return fs.SkipAll
		}
		name := p.Name(e.Name())
		top, _, below := strings.Cut(name, "/")
		if e.IsDir() {
			if trees == nil {
				return nil
			}
			if !below {
				lines[top] = []string{}
			}
			return p.Enter(e.Name())
		}
		digest, what, err := contentOf(p, e)
		switch {
		case err != nil:
			return err
		case below:
			lines[top] = append(lines[top], strings.TrimPrefix(name, top+"/")+"\x00"+what+"\n")
		case digest != nil:
			files[name] = *digest
		}
		return nil
	}, func(name string, err error) { h.fail(path.Join(filepath.Base(dir), name), err) })
	for top, list := range lines {
		slices.Sort(list)
		sum := sha256.Sum256([]byte(strings.Join(list, "")))
		trees[top] = "sha256:" + hex.EncodeToString(sum[:])
	}
}

// contentOf is the digest of a file, or nil and what else an entry is.
func contentOf(p bounded.Place, e fs.DirEntry) (*jobdir.FileDigest, string, error) {
	if !e.Type().IsRegular() {
		return nil, bounded.Kind(e.Type()), nil
	}
	f, err := bounded.OpenAt(p.Root, e.Name())
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, "", err
	}
	sum, err := bounded.SHA256(f)
	if err != nil {
		return nil, "", err
	}
	return &jobdir.FileDigest{SHA256: sum, Size: info.Size()}, sum, nil
}
