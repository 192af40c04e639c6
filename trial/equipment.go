package trial

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
)

// equipment has what an agent gets besides its task (Harbor agent format, section
// 8).
type equipment struct {
	skills    []agent.Skill // to be uploaded
	skillsDir string        // in the sandbox; empty when there are no skills
	servers   []agent.MCPServer
}

// findEquipment finds the skills and the MCP servers of the task and the configuration.
func findEquipment(task *harbor.Task, cfg jobdir.AgentConfig, home string) (equipment, error) {
	skills, err := agent.FindSkills(cfg.Skills, home)
	if err != nil {
		return equipment{}, err
	}
	e := equipment{skills: skills, servers: mcpServers(task.Config.Environment.MCPServers, cfg.MCPServers)}
	if dir := task.Config.Environment.SkillsDir; dir != nil && *dir != "" {
		e.skillsDir = *dir
	} else if len(skills) > 0 {
		e.skillsDir = task.Config.Environment.OS.InEnvironment(harbor.SkillsDir)
	}
	if len(skills) > 0 && !path.IsAbs(strings.TrimPrefix(e.skillsDir, "C:")) {
		return e, exception.Errorf(exception.ValueError, "[environment].skills_dir must be an absolute path when skills are injected: %s", e.skillsDir)
	}
	return e, nil
}

// mcpServers merges lists; a later server replaces an earlier one of its name
// where that stands.
func mcpServers(lists ...[]harbor.MCPServer) []agent.MCPServer {
	var all []agent.MCPServer
	for _, s := range slices.Concat(lists...) {
		server := agent.MCPServer{Name: s.Name, Transport: s.Transport, Args: s.Args}
		if s.URL != nil {
			server.URL = *s.URL
		}
		if s.Command != nil {
			server.Command = *s.Command
		}
		if i := slices.IndexFunc(all, func(known agent.MCPServer) bool { return known.Name == s.Name }); i >= 0 {
			all[i] = server
			continue
		}
		all = append(all, server)
	}
	return all
}

// uploads are the skills as the environment takes them.
func (e *equipment) uploads() []environment.Upload {
	var all []environment.Upload
	for _, s := range e.skills {
		all = append(all, environment.Upload{What: fmt.Sprintf("skill %q", s.Name), Dir: s.Dir, Target: path.Join(e.skillsDir, s.Name)})
	}
	return all
}

// equip brings the skills into the sandbox.
func (a *attempt) equip(ctx context.Context) error {
	if len(a.equipment.skills) > 0 {
		a.enter(phaseSkills)
	}
	return a.env.Equip(ctx)
}

// home is the home directory of whoever runs trials; empty for none.
func (r *Runner) home() string {
	home, _ := r.Lookup("HOME")
	return home
}
