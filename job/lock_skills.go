package job

import (
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/trial"
)

// skillLocks pins the skills of agents, those of each list of paths once.
type skillLocks struct {
	home  string
	known map[string][]SkillLock // by the paths
}

// of pins the skills that an agent is given (Harbor job format, sections 6.3
// and 6.4).
func (s skillLocks) of(a trial.AgentConfig) ([]SkillLock, error) {
	key := strings.Join(a.Skills, "\x00")
	if locks, ok := s.known[key]; ok {
		return locks, nil
	}
	skills, err := agent.FindSkills(a.Skills, s.home)
	if err != nil {
		return nil, fmt.Errorf("pinning skills: %w", err)
	}
	locks := make([]SkillLock, len(skills))
	for i, skill := range skills {
		digest, err := skill.Digest()
		if err != nil {
			return nil, err
		}
		locks[i] = SkillLock{Name: skill.Name, Source: skill.Dir, Digest: digest}
	}
	s.known[key] = locks
	return locks, nil
}
