package job

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/homedir"
	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/jobdir"
)

// newLock pins the plan.
func newLock(p *Prepared, f *foundTasks, o PrepareOptions) (*jobdir.Lock, error) {
	lock := &jobdir.Lock{
		SchemaVersion:     jobdir.LockSchemaVersion,
		CreatedAt:         jobdir.UTC(o.Now),
		Harbor:            jobdir.HarborInfo{Version: new(version.Harbor), IsEditable: new(false)},
		Invocation:        jobdir.RedactInvocation(o.Invocation, o.Lookup),
		NConcurrentTrials: p.Config.NConcurrentTrials,
		Retry:             p.Config.Retry,
		Trials:            make([]jobdir.TrialLock, 0, len(p.Trials)),
	}
	extra, err := fileLocks(p.Config.ExtraInstructionPaths, o.Home)
	if err != nil {
		return nil, err
	}
	compose, err := fileLocks(p.Config.Environment.ExtraDockerCompose, "")
	if err != nil {
		return nil, err
	}
	skills := skillLocks{home: o.Home, known: map[string][]jobdir.SkillLock{}}
	for _, t := range p.Trials {
		home := f.homes[TaskKey(t.Task)]
		in := lockInputs{
			TaskName: home.name, TaskDigest: home.digest, GitCommitID: home.commit,
			ExtraInstructions: extra, ExtraDockerCompose: compose,
		}
		if in.Skills, err = skills.of(t.Agent); err != nil {
			return nil, err
		}
		lock.Trials = append(lock.Trials, lockTrial(t, in))
	}
	return lock, nil
}

// lockInputs is what has to be looked up to pin a trial.
type lockInputs struct {
	TaskName           string
	TaskDigest         string  // content hash, "sha256:…"; for a package see [PackageDigest]
	GitCommitID        *string // resolved commit of a git task
	ExtraInstructions  []jobdir.FileLock
	Skills             []jobdir.SkillLock
	ExtraDockerCompose []jobdir.FileLock
}

// lockTrial pins a planned trial.
func lockTrial(c jobdir.TrialConfig, in lockInputs) jobdir.TrialLock {
	lock := jobdir.PlannedAs(c)
	lock.Task.Name, lock.Task.Digest = in.TaskName, in.TaskDigest
	if lock.Task.Type == jobdir.GitTask {
		lock.Task.GitCommitID = in.GitCommitID
	}
	lock.ExtraInstructions, lock.Skills, lock.ExtraDockerCompose = orNone(in.ExtraInstructions), in.Skills, orNone(in.ExtraDockerCompose)
	return lock
}

func orNone[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// skillLocks pins the skills of agents, those of each list of paths once.
type skillLocks struct {
	home  string
	known map[string][]jobdir.SkillLock // by the paths
}

// of pins the skills that an agent is given (Harbor job format, sections 6.3
// and 6.4).
func (s skillLocks) of(a jobdir.AgentConfig) ([]jobdir.SkillLock, error) {
	key := strings.Join(a.Skills, "\x00")
	if locks, ok := s.known[key]; ok {
		return locks, nil
	}
	skills, err := agent.FindSkills(a.Skills, s.home)
	if err != nil {
		return nil, fmt.Errorf("pinning skills: %w", err)
	}
	locks := make([]jobdir.SkillLock, len(skills))
	for i, skill := range skills {
		digest, err := skill.Digest()
		if err != nil {
			return nil, err
		}
		locks[i] = jobdir.SkillLock{Name: skill.Name, Source: skill.Dir, Digest: digest}
	}
	s.known[key] = locks
	return locks, nil
}

// maxPinned bounds a file whose digest a lock has, in bytes: an instruction.
const maxPinned = 64 << 20

// fileLocks pins files by their content. A path below ~ is one below home,
// unless that is empty.
func fileLocks(paths []string, home string) ([]jobdir.FileLock, error) {
	var locks []jobdir.FileLock
	for _, path := range paths {
		data, err := bounded.ReadFile(homedir.Expand(path, home), maxPinned)
		if err != nil {
			return nil, fmt.Errorf("pinning %q: %w", path, err)
		}
		locks = append(locks, jobdir.FileLock{Path: path, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(data))})
	}
	return locks, nil
}
