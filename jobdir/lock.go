package jobdir

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/dump"
)

// LockSchemaVersion is the schema version of lock files.
const LockSchemaVersion = 1

// Lock pins what a job resolved its configuration to (Harbor job format,
// section 6.3): which task contents, skills and extra files its trials use. A
// job directory is resumed only with an [Lock.Equal] lock.
type Lock struct {
	SchemaVersion     int
	CreatedAt         Time // UTC
	Harbor            HarborInfo
	Invocation        []string // see [RedactInvocation]
	NConcurrentTrials int
	Retry             RetryConfig
	Trials            []TrialLock
}

// HarborInfo says which version of the format's runner wrote a lock. Nil
// fields are left out.
type HarborInfo struct {
	Version       *string
	GitCommitHash *string
	IsEditable    *bool
}

// TrialLock pins one trial.
type TrialLock struct {
	Task TaskLock

	TimeoutMultiplier                 float64
	AgentTimeoutMultiplier            *float64
	VerifierTimeoutMultiplier         *float64
	AgentSetupTimeoutMultiplier       *float64
	EnvironmentBuildTimeoutMultiplier *float64

	ExtraInstructions  []FileLock // nil if there are none
	Agent              AgentConfig
	Skills             []SkillLock
	Environment        EnvironmentConfig
	ExtraDockerCompose []FileLock // nil if there are none
	Verifier           VerifierConfig
}

// TaskLock pins a task by its content.
type TaskLock struct {
	Name        string
	Type        TaskKind
	Digest      string // "sha256:" and 64 hex digits
	Source      *string
	Path        *string
	GitURL      *string
	GitCommitID *string
}

// FileLock pins a file by its content. Its path is for people.
type FileLock struct {
	Path   string
	Digest string // "sha256:" and 64 hex digits
}

// SkillLock pins an agent skill by name and content.
type SkillLock struct {
	Name   string
	Source string
	Digest string // "sha256:" and 64 hex digits
}

const DigestPrefix = "sha256:"

// PackageDigest returns the digest of a package task: its resolved content
// hash (bare hex or with prefix), else its reference if that is a digest.
func PackageDigest(name, contentHash string, ref *string) (string, error) {
	if contentHash != "" {
		return DigestPrefix + strings.TrimPrefix(contentHash, DigestPrefix), nil
	}
	if ref != nil && IsDigest(*ref) {
		return *ref, nil
	}
	return "", RuleError("Package task '" + name + "' was not resolved to a sha256 digest.")
}

func IsDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, DigestPrefix)
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

// envFlags are the options whose values are environment variables.
var envFlags = []string{"--ae", "--agent-env", "--ve", "--verifier-env"}

// RedactInvocation returns a command line as a lock records it: credentials
// that follow an option for environment variables are redacted.
func RedactInvocation(argv []string, lookup harbor.Lookup) []string {
	out := slices.Clone(argv)
	for i, arg := range out {
		if i > 0 && slices.Contains(envFlags, argv[i-1]) {
			out[i] = redactPair(arg, lookup)
			continue
		}
		if flag, pair, ok := strings.Cut(arg, "="); ok && slices.Contains(envFlags, flag) {
			out[i] = flag + "=" + redactPair(pair, lookup)
		}
	}
	return out
}

func redactPair(pair string, lookup harbor.Lookup) string {
	name, value, ok := strings.Cut(pair, "=")
	if !ok {
		return pair
	}
	return name + "=" + harbor.RedactEnv(strings.TrimSpace(name), value, lookup)
}

// Equal reports whether two locks pin the same job. Trials are compared as a
// set that may hold an entry several times; tasks and extra files count by
// their digests, skills by name and digest. When and by which runner a lock
// was written does not count, nor does the command line.
func (l Lock) Equal(m Lock, lookup harbor.Lookup) bool {
	e := encoder{Encoder{Lookup: lookup, OmitNull: true}}
	return l.SchemaVersion == m.SchemaVersion &&
		l.NConcurrentTrials == m.NConcurrentTrials &&
		string(dump.AppendCanonical(nil, e.retry(l.Retry))) == string(dump.AppendCanonical(nil, e.retry(m.Retry))) &&
		slices.Equal(e.trialKeys(l.Trials), e.trialKeys(m.Trials))
}

// PlannedAs is the entry of a lock for a trial, without what has to be looked up: the
// digests, the task's name where it is no package, its commit.
func PlannedAs(c TrialConfig) TrialLock {
	task := TaskLock{Type: c.Task.Kind(), Source: c.Task.Source, Path: c.Task.Path, GitURL: c.Task.GitURL}
	if task.Type == PackageTask {
		task.Name = *c.Task.Name
	}
	return TrialLock{
		Task:                              task,
		TimeoutMultiplier:                 c.TimeoutMultiplier,
		AgentTimeoutMultiplier:            c.AgentTimeoutMultiplier,
		VerifierTimeoutMultiplier:         c.VerifierTimeoutMultiplier,
		AgentSetupTimeoutMultiplier:       c.AgentSetupTimeoutMultiplier,
		EnvironmentBuildTimeoutMultiplier: c.EnvironmentBuildTimeoutMultiplier,
		Agent:                             c.Agent,
		Environment:                       c.Environment,
		Verifier:                          c.Verifier,
	}
}

// PlanKey is the same for entries that ask for the same trial, whatever contents they
// pin: a trial's own configuration has it by [PlannedAs].
func (t TrialLock) PlanKey() [sha256.Size]byte {
	t.ExtraInstructions, t.Skills, t.ExtraDockerCompose, t.Task.Digest = nil, nil, nil, ""
	e := encoder{Encoder{OmitNull: true}}
	o := e.object()
	o.Str("key", e.trialKey(t))
	o.Str("type", string(t.Task.Type))
	for _, s := range []struct {
		key  string
		text *string
	}{{"source", t.Task.Source}, {"path", t.Task.Path}, {"git_url", t.Task.GitURL}} {
		o.Str(s.key, orEmpty(s.text))
	}
	if t.Task.Type == PackageTask {
		o.Str("name", t.Task.Name)
	}
	return sha256.Sum256(dump.AppendCanonical(nil, o.Value()))
}

// trialKeys are the keys of trials by their digests: a key is longer than most of
// what else is known of a trial.
func (e encoder) trialKeys(trials []TrialLock) [][sha256.Size]byte {
	keys := make([][sha256.Size]byte, len(trials))
	for i := range trials {
		keys[i] = sha256.Sum256([]byte(e.trialKey(trials[i])))
	}
	slices.SortFunc(keys, func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) })
	return keys
}

// trialKey is a text that equal entries share.
func (e encoder) trialKey(t TrialLock) string {
	t.Agent.Skills = nil
	t.Environment.ExtraDockerCompose = nil
	o := e.object()
	o.Str("task", t.Task.Digest)
	e.multipliers(o, &t)
	o.Set("extra_instructions", digests(t.ExtraInstructions))
	o.Set("agent", e.Agent(t.Agent))
	skills := make([]string, 0, 2*len(t.Skills))
	for _, s := range t.Skills {
		skills = append(skills, s.Name, s.Digest)
	}
	o.Strs("skills", skills)
	o.Set("environment", e.Environment(t.Environment))
	o.Set("extra_docker_compose", digests(t.ExtraDockerCompose))
	o.Set("verifier", e.Verifier(t.Verifier))
	return string(dump.AppendCanonical(nil, o.Value()))
}
