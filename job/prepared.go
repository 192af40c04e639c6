package job

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/score"
)

// Prepared is a job ready to run: a plain value between [Prepare] and
// [Runner.Run]. It survives JSON, so that another scheduler can carry it to
// where its trials run. JSON has what files have: credentials are redacted, and
// taken from the environment of the runner; a limit of infinite seconds becomes
// none.
type Prepared struct {
	Config jobdir.Config
	ID     uuid.UUID
	// Trials is the plan in its order.
	Trials []jobdir.TrialConfig
	// Remaining indexes the trials that are still to run.
	Remaining []int
	// Existing are the records of trials that an earlier run finished, in
	// their final order.
	Existing []jobdir.Record
	// Metrics are bound to what runs their scripts by the runner.
	Metrics score.Metrics
	Lock    *jobdir.Lock
	// StartedAt and Retries are those of the first run when a job is resumed.
	StartedAt jobdir.Time
	Retries   int
	// Warnings that people should see before the job starts.
	Warnings []string
	// Variables are the templates in the tasks that take their value from the
	// host.
	Variables []TaskVariable
	// Dirs says where each task lies on the machine that prepared the job, by
	// [TaskKey].
	Dirs map[string]string
	// Policy is the scoring policy that was fixed before the job ran; nil for none.
	Policy *outcome.Policy
	// Begun: the job's directory has a result.
	Begun bool
	// Redacted: the configurations were read back, and what stands redacted in
	// them is taken from the environment.
	Redacted bool
	// literals are values that the configurations have marks for, by the marks' names.
	// Without them, as after JSON, they are taken from the environment.
	literals map[string]string
	// configs are what the task.toml of the tasks say, by [TaskKey], as far as they were read.
	configs map[string]*harbor.Config

	// Earlier says for the trials whose directory holds an earlier attempt why
	// they run again, by index.
	Earlier map[int]string
	// Orphans are directories of the job that no planned trial can take over.
	// They are moved to OrphansDir when the job runs.
	Orphans    []string
	OrphansDir string
	// Repairs are the damaged files that are written again when the job runs.
	Repairs []Repair
}

// Repair is a file of a job directory with the content that it is to have.
type Repair struct {
	Path string `json:"path"`
	Data []byte `json:"data"`
}

// preparedJSON is a Prepared with the documents as the texts that files hold:
// those may have numbers that JSON has not.
type preparedJSON struct {
	Config     string            `json:"config"`
	ID         uuid.UUID         `json:"id"`
	Trials     []string          `json:"trials"`
	Remaining  []int             `json:"remaining"`
	Existing   []jobdir.Record   `json:"existing"`
	Metrics    score.Metrics     `json:"metrics"`
	Lock       *string           `json:"lock"`
	StartedAt  jobdir.Time       `json:"started_at"`
	Retries    int               `json:"retries"`
	Warnings   []string          `json:"warnings"`
	Variables  []TaskVariable    `json:"variables"`
	Dirs       map[string]string `json:"dirs"`
	Policy     *string           `json:"policy,omitempty"`
	Begun      bool              `json:"begun"`
	Earlier    map[int]string    `json:"earlier"`
	Orphans    []string          `json:"orphans"`
	OrphansDir string            `json:"orphans_dir"`
	Repairs    []Repair          `json:"repairs"`
}

// MarshalJSON writes the job, its credentials redacted.
func (p *Prepared) MarshalJSON() ([]byte, error) {
	out := preparedJSON{
		Config: string(p.Config.AppendJSON(nil, nil)), ID: p.ID, Remaining: p.Remaining, Existing: p.Existing,
		Metrics: p.Metrics, StartedAt: p.StartedAt, Retries: p.Retries, Warnings: p.Warnings, Variables: p.Variables,
		Dirs: p.Dirs, Begun: p.Begun, Earlier: p.Earlier, Orphans: p.Orphans, OrphansDir: p.OrphansDir, Repairs: p.Repairs,
	}
	for _, t := range p.Trials {
		out.Trials = append(out.Trials, string(t.AppendJSON(nil, nil)))
	}
	if p.Lock != nil {
		out.Lock = new(string(p.Lock.AppendJSON(nil, nil)))
	}
	if p.Policy != nil {
		text, err := p.Policy.Text()
		if err != nil {
			return nil, fmt.Errorf("writing a prepared job as JSON: %w", err)
		}
		out.Policy = &text
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("writing a prepared job as JSON: %w", err)
	}
	return data, nil
}

// UnmarshalJSON reads what [Prepared.MarshalJSON] writes.
func (p *Prepared) UnmarshalJSON(data []byte) error {
	var in preparedJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("reading a prepared job: %w", err)
	}
	config, _, err := jobdir.ParseConfig([]byte(in.Config), jobdir.JSON, time.Time{})
	if err != nil {
		return fmt.Errorf("reading a prepared job: %w", err)
	}
	read := Prepared{
		Config: config, ID: in.ID, Remaining: in.Remaining, Existing: in.Existing, Metrics: in.Metrics,
		StartedAt: in.StartedAt, Retries: in.Retries, Warnings: in.Warnings, Variables: in.Variables, Dirs: in.Dirs,
		Begun: in.Begun, Redacted: true, Earlier: in.Earlier, Orphans: in.Orphans, OrphansDir: in.OrphansDir, Repairs: in.Repairs,
	}
	for _, text := range in.Trials {
		t, _, err := jobdir.ParseTrialConfig([]byte(text))
		if err != nil {
			return fmt.Errorf("reading a prepared job: trials[%d]: %w", len(read.Trials), err)
		}
		read.Trials = append(read.Trials, t)
	}
	for _, i := range read.Remaining {
		if i < 0 || i >= len(read.Trials) {
			return fmt.Errorf("reading a prepared job: remaining names trial %d of %d", i, len(read.Trials))
		}
	}
	if in.Lock != nil {
		lock, err := jobdir.ParseLock([]byte(*in.Lock))
		if err != nil {
			return fmt.Errorf("reading a prepared job: %w", err)
		}
		read.Lock = &lock
	}
	if in.Policy != nil {
		policy, err := outcome.ParsePolicy([]byte(*in.Policy))
		if err != nil {
			return fmt.Errorf("reading a prepared job: %w", err)
		}
		read.Policy = &policy
	}
	*p = read
	return nil
}
