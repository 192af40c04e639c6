package environment

import (
	"context"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/sandbox"
)

// AgentUser is who the agent works as, empty for the image's user. step may be
// nil.
func (e *Environment) AgentUser(step *harbor.Step) string {
	return AgentUser(e.cfg.Task, step)
}

// userName is empty for the image's user.
func userName(u *harbor.User) string {
	if u == nil {
		return ""
	}
	return u.String()
}

// AgentUser is who the agent of a task works as, as [Environment.AgentUser] has it.
func AgentUser(task *harbor.Task, step *harbor.Step) string {
	return userName(task.Config.AgentUser(step))
}

// Exec runs a command of the agent, as the agent's user unless it names one.
// Tests that a verification in between left behind are removed before: the
// agent is not to see them.
func (e *Environment) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	sb, err := e.running()
	if err != nil {
		return sandbox.ExitStatus{}, err
	}
	e.mu.Lock()
	hide := e.testsInside
	e.testsInside = false
	e.used++
	e.mu.Unlock()
	if hide {
		if err := emptyForTests(ctx, sb); err != nil {
			return sandbox.ExitStatus{}, err
		}
	}
	if cmd.User == "" {
		cmd.User = e.AgentUser(nil)
	}
	return sb.Exec(ctx, cmd)
}
