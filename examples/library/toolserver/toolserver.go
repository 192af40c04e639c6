// Package toolserver offers one task of a cube to a client of the Model Context Protocol,
// without a job.
package toolserver

import (
	"context"
	"fmt"
	"io"

	"github.com/proctor-run/proctor/agent/mcp"
	"github.com/proctor-run/proctor/cube"
)

// Play serves the task's actions as tools by lines of JSON, until the task has ended or the
// client hangs up, and returns the reward. The client does not see it.
func Play(ctx context.Context, task *cube.Task, in io.Reader, out io.Writer) (reward float64, err error) {
	player := mcp.NewPlayer(mcp.Options{Name: "one-task"})
	served := make(chan error, 1)
	go func() {
		err := player.ServeStdio(ctx, in, out)
		player.Leave(err)
		served <- err
	}()
	reward, failed, err := episode(ctx, task, player)
	player.End(failed) // calls that come later are refused
	if err != nil {
		return 0, err
	}
	return reward, <-served // the client has its last answer when it hangs up
}

// episode steps the task with what the client asks for.
func episode(ctx context.Context, task *cube.Task, player *mcp.Player) (reward float64, failed *cube.StepError, err error) {
	obs, _, err := task.Reset(ctx)
	if err != nil {
		return 0, nil, fmt.Errorf("resetting the task: %w", err)
	}
	for {
		offered := task.ActionSet() //nolint:contextcheck // an action set has no context
		if task.AcceptsStop() {
			offered = append(offered, cube.StopAction())
		}
		actions, err := player.Act(ctx, obs, offered)
		switch {
		case err != nil:
			return 0, nil, err
		case len(actions) == 0: // the client has gone
			reward, _, err := task.Evaluate(ctx, obs)
			return reward, nil, err
		}
		out, err := task.Step(ctx, actions...)
		if err != nil {
			return 0, nil, err
		}
		if out.Done {
			return out.Reward, out.Error, nil
		}
		obs = out.Obs
	}
}
