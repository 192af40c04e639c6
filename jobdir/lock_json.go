package jobdir

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/dump"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// AppendJSON appends the text of a job's lock.json: fields that are null are
// left out, credentials in env maps redacted.
func (l Lock) AppendJSON(dst []byte, lookup harbor.Lookup) []byte {
	out := bytes.NewBuffer(dst)
	_ = l.WriteJSON(out, lookup) // a buffer takes everything
	return out.Bytes()
}

// WriteJSON writes what AppendJSON appends, trial by trial: a lock has as much text
// for a trial as its configuration has, and all of it at once is the largest thing
// of a big job.
func (l Lock) WriteJSON(w io.Writer, lookup harbor.Lookup) error {
	e := encoder{Encoder{Lookup: lookup, OmitNull: true}}
	s := value.NewStream(w, Indent)
	s.Members(e.lockHead(l))
	s.List("trials", func(yield func(value.Value) bool) {
		for i := range l.Trials {
			if !yield(e.trialLock(&l.Trials[i])) {
				return
			}
		}
	})
	return s.Close()
}

// lockHead is a lock without its trials, which come last.
func (e encoder) lockHead(l Lock) *value.Object {
	o := e.object()
	o.Int("schema_version", l.SchemaVersion)
	o.Str("created_at", l.CreatedAt.String())
	h := e.object()
	h.OptStr("version", l.Harbor.Version)
	h.OptStr("git_commit_hash", l.Harbor.GitCommitHash)
	if l.Harbor.IsEditable != nil {
		h.Bool("is_editable", *l.Harbor.IsEditable)
	}
	o.Set("harbor", h.Value())
	o.Strs("invocation", l.Invocation)
	o.Int("n_concurrent_trials", l.NConcurrentTrials)
	o.Set("retry", e.retry(l.Retry))
	return o.Value()
}

func (e encoder) multipliers(o *dump.Object, t *TrialLock) {
	o.Float("timeout_multiplier", t.TimeoutMultiplier)
	o.OptFloat("agent_timeout_multiplier", t.AgentTimeoutMultiplier)
	o.OptFloat("verifier_timeout_multiplier", t.VerifierTimeoutMultiplier)
	o.OptFloat("agent_setup_timeout_multiplier", t.AgentSetupTimeoutMultiplier)
	o.OptFloat("environment_build_timeout_multiplier", t.EnvironmentBuildTimeoutMultiplier)
}

func (e encoder) trialLock(t *TrialLock) value.Value {
	o := e.object()
	task := e.object()
	task.Str("name", t.Task.Name)
	task.Str("type", string(t.Task.Type))
	task.Str("digest", t.Task.Digest)
	task.OptStr("source", t.Task.Source)
	task.OptStr("path", t.Task.Path)
	task.OptStr("git_url", t.Task.GitURL)
	task.OptStr("git_commit_id", t.Task.GitCommitID)
	o.Set("task", task.Value())
	e.multipliers(o, t)
	o.Set("extra_instructions", e.files(t.ExtraInstructions))
	o.Set("agent", e.Agent(t.Agent))
	o.Set("skills", dump.List(t.Skills, func(s SkillLock) value.Value {
		skill := e.object()
		skill.Str("name", s.Name)
		skill.Str("source", s.Source)
		skill.Str("digest", s.Digest)
		return skill.Value()
	}))
	o.Set("environment", e.Environment(t.Environment))
	o.Set("extra_docker_compose", e.files(t.ExtraDockerCompose))
	o.Set("verifier", e.Verifier(t.Verifier))
	return o.Value()
}

func (e encoder) files(files []FileLock) value.Value {
	if files == nil {
		return nil
	}
	return dump.List(files, func(f FileLock) value.Value {
		o := e.object()
		o.Str("path", f.Path)
		o.Str("digest", f.Digest)
		return o.Value()
	})
}

func digests(files []FileLock) value.Value {
	if files == nil {
		return nil
	}
	return dump.List(files, func(f FileLock) value.Value { return value.Str(f.Digest) })
}

// ParseLock reads a job's lock.json. The error for an invalid document is a
// *schema.Errors holding every problem.
func ParseLock(data []byte) (Lock, error) {
	v, err := value.Decode(data)
	if err != nil {
		return Lock{}, fmt.Errorf("reading job lock: %w", err)
	}
	l, _, err := schema.Validate(v, schema.Model("JobLock", lockFields))
	return l, err
}

func lockFields(f *schema.Fields) Lock {
	return Lock{
		SchemaVersion:     schema.Default(f, "schema_version", LockSchemaVersion, schema.SmallInt),
		CreatedAt:         schema.Required(f, "created_at", decodeTime),
		Harbor:            schema.Nested(f, "harbor", schema.Model("HarborLockInfo", harborFields)),
		Invocation:        schema.Default(f, "invocation", nil, schema.List(schema.Str)),
		NConcurrentTrials: schema.Required(f, "n_concurrent_trials", schema.SmallInt),
		Retry:             schema.Required(f, "retry", decodeRetry),
		Trials:            schema.Default(f, "trials", nil, schema.List(schema.Model("TrialLock", trialLockFields))),
	}
}

func harborFields(f *schema.Fields) HarborInfo {
	return HarborInfo{
		Version:       schema.Optional(f, "version", schema.Str),
		GitCommitHash: schema.Optional(f, "git_commit_hash", schema.Str),
		IsEditable:    schema.Optional(f, "is_editable", schema.Bool),
	}
}

func trialLockFields(f *schema.Fields) TrialLock {
	return TrialLock{
		Task:                              schema.Required(f, "task", schema.Model("TaskLock", taskLockFields)),
		TimeoutMultiplier:                 schema.Default(f, "timeout_multiplier", 1, schema.Float),
		AgentTimeoutMultiplier:            schema.Optional(f, "agent_timeout_multiplier", schema.Float),
		VerifierTimeoutMultiplier:         schema.Optional(f, "verifier_timeout_multiplier", schema.Float),
		AgentSetupTimeoutMultiplier:       schema.Optional(f, "agent_setup_timeout_multiplier", schema.Float),
		EnvironmentBuildTimeoutMultiplier: schema.Optional(f, "environment_build_timeout_multiplier", schema.Float),
		ExtraInstructions:                 schema.OptionalList(f, "extra_instructions", schema.List(decodeFileLock)),
		Agent:                             schema.Required(f, "agent", decodeAgent),
		Skills:                            schema.Default(f, "skills", nil, schema.List(schema.Model("AgentSkillLock", skillLockFields))),
		Environment:                       schema.Required(f, "environment", DecodeEnvironment),
		ExtraDockerCompose:                schema.OptionalList(f, "extra_docker_compose", schema.List(decodeFileLock)),
		Verifier:                          schema.Required(f, "verifier", decodeVerifier),
	}
}

func taskLockFields(f *schema.Fields) TaskLock {
	return TaskLock{
		Name:        schema.Required(f, "name", schema.Str),
		Type:        schema.Required(f, "type", schema.Literal(LocalTask, GitTask, PackageTask)),
		Digest:      schema.Required(f, "digest", DecodeDigest),
		Source:      schema.Optional(f, "source", schema.Str),
		Path:        schema.Optional(f, "path", schema.Path),
		GitURL:      schema.Optional(f, "git_url", schema.Str),
		GitCommitID: schema.Optional(f, "git_commit_id", schema.Str),
	}
}

func decodeFileLock(c *schema.Cursor, v value.Value) (FileLock, bool) {
	return schema.Model("FileLock", func(f *schema.Fields) FileLock {
		return FileLock{
			Path:   schema.Default(f, "path", "", schema.Path),
			Digest: schema.Required(f, "digest", DecodeDigest),
		}
	})(c, v)
}

func skillLockFields(f *schema.Fields) SkillLock {
	return SkillLock{
		Name:   schema.Required(f, "name", schema.Str),
		Source: schema.Required(f, "source", schema.Path),
		Digest: schema.Required(f, "digest", DecodeDigest),
	}
}

var errDigest = errors.New("digest must be 'sha256:' and 64 lower-case hex digits")

func DecodeDigest(c *schema.Cursor, v value.Value) (string, bool) {
	return schema.After(schema.Str, func(s string) (string, error) {
		if !IsDigest(s) {
			return s, errDigest
		}
		return s, nil
	})(c, v)
}
