package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// stepsFile holds one JSON object per step of an episode.
const stepsFile = "steps.jsonl"

// defaultMaxSteps bounds an episode whose task recommends nothing.
const defaultMaxSteps = 10_000

// episode is an agent playing a task (CUBE, section 10.6).
type episode struct {
	task     *cube.Task
	agent    cube.Agent
	maxSteps int
	log      *bounded.File

	steps int
	// obs is what the agent saw last, or would have seen next.
	obs *cube.Observation
	// out is the result of the last step; nil before the first.
	out *cube.EnvironmentOutput
	end string // one of jobdir's ends of episodes; empty while it is being played
	// stop is the stop action that ended the episode and that the task accepts:
	// its evaluation is still to be made.
	stop *cube.Action
}

// limitOf returns how many steps an agent may take: the number asked for, else the
// one that the task recommends.
func limitOf(asked int, task *cube.Task) int {
	recommended := task.Metadata().Base().RecommendedMaxSteps
	switch {
	case asked > 0:
		return asked
	case recommended != nil && *recommended > 0:
		return *recommended
	}
	return defaultMaxSteps
}

// play resets the task and steps until it is done, the agent stops or the limit
// is reached. A stop that the task accepts is not stepped: the evaluation that
// follows from it is the verification's.
func (e *episode) play(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			e.end = jobdir.EpisodeFailed
		}
	}()
	if e.obs, _, err = e.task.Reset(ctx); err != nil {
		return err
	}
	for e.steps < e.maxSteps {
		actions, err := e.agent.Act(ctx, e.obs, e.offered()) //nolint:contextcheck // an action set has no context
		if err != nil {
			return err
		}
		if e.stops(actions) {
			e.end = jobdir.EpisodeStopped
			return nil
		}
		if err := e.step(ctx, actions); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if e.out.Done {
			e.end = jobdir.EpisodeDone
			return nil
		}
	}
	e.end = jobdir.EpisodeMaxSteps
	return nil
}

// offered are the agent's actions: the action set, with the stop action where
// the task accepts it.
func (e *episode) offered() []cube.ActionSchema {
	actions := e.task.ActionSet()
	if !e.task.AcceptsStop() || slices.ContainsFunc(actions, isStop) {
		return actions
	}
	return append(slices.Clip(actions), cube.StopAction())
}

func isStop(a cube.ActionSchema) bool { return a.Name == cube.StopName }

// stops reports whether a turn ends the episode without a step: the agent stops.
// A task that rejects the stop action and has no action of that name is not
// handed one; it is evaluated as it is.
func (e *episode) stops(actions []cube.Action) bool {
	stop := cube.Stop()
	if len(actions) > 0 {
		stop = actions[0]
	}
	switch {
	case stop.Name != cube.StopName:
		return false
	case e.task.AcceptsStop():
		e.stop = &stop
		return true
	}
	return len(actions) == 0 || !slices.ContainsFunc(e.task.Tool().Actions(), isStop)
}

func (e *episode) step(ctx context.Context, actions []cube.Action) error {
	out, err := e.task.Step(ctx, actions...)
	e.steps++
	if err != nil {
		// The results of the actions before the failure are kept.
		if logErr := e.record(actions, out, err); logErr != nil {
			return errors.Join(err, logErr)
		}
		return err
	}
	e.out, e.obs = out, out.Obs
	return e.record(actions, out, nil)
}

// evaluate scores the episode, once: the reward of a step that ended the task is
// the result, and only otherwise the task is evaluated, with what was seen last.
func (e *episode) evaluate(ctx context.Context) (float64, cube.Info, error) {
	if e.out != nil && e.out.Done {
		return e.out.Reward, e.out.Info, nil
	}
	out := &cube.EnvironmentOutput{Obs: e.obs, Done: e.stop != nil, Truncated: e.truncated()}
	var actions []cube.Action
	if e.stop != nil {
		out.Obs, actions = cube.StopObservation(), []cube.Action{*e.stop}
	}
	var err error
	out.Reward, out.Info, err = e.task.Evaluate(ctx, out.Obs)
	if out.Obs == nil { // the task was never reset
		out.Obs = &cube.Observation{}
	}
	if err != nil {
		out.Reward, out.Info = 0, nil
		if logErr := e.record(actions, out, err); logErr != nil {
			return 0, nil, errors.Join(err, logErr)
		}
		return 0, nil, err
	}
	return out.Reward, out.Info, e.record(actions, out, nil)
}

// truncated reports whether a limit ended the episode.
func (e *episode) truncated() bool {
	return e.end == jobdir.EpisodeMaxSteps || e.end == jobdir.EpisodeTimeout
}

// record writes a line to the log: the actions of a turn and their results.
// A forced evaluation has no action.
func (e *episode) record(actions []cube.Action, out *cube.EnvironmentOutput, failed error) error {
	line := cube.Pairs("action", nil, "output", nil)
	if len(actions) > 0 {
		v, err := cube.ValueOf(&actions[0])
		if err != nil {
			return err
		}
		line.Set("action", v)
	}
	if len(actions) > 1 {
		v, err := cube.ValueOf(actions)
		if err != nil {
			return err
		}
		line.Set("actions", v)
	}
	if out != nil {
		v, err := cube.ValueOf(out)
		if err != nil {
			return err
		}
		line.Set("output", v)
	}
	if failed != nil {
		line.Set("error", value.Str(cube.ErrorType(failed)+": "+failed.Error()))
	}
	_, err := e.log.Write(append(value.AppendPydantic(nil, line, 0), '\n'))
	return err
}

// beginEpisode opens the episode's log. It is closed by closeEpisode.
func (c *cubeRun) beginEpisode() error {
	log, err := bounded.Create(c.trial.hostDir("agent"), stepsFile, c.trial.r.outputLimit())
	if err != nil {
		return fmt.Errorf("keeping the steps: %w", err)
	}
	c.episode = &episode{task: c.task, agent: c.player.Agent, maxSteps: limitOf(c.player.maxSteps, c.task), log: log}
	return nil
}

// noteEpisode records how the episode ended. passed is the error of a deadline.
func (c *cubeRun) noteEpisode(err, passed error) {
	a, e := c.trial, c.episode
	if errors.Is(err, passed) {
		e.end = jobdir.EpisodeTimeout
	}
	if e.end == jobdir.EpisodeMaxSteps {
		a.warn("the agent did not stop within %d steps", e.maxSteps)
	}
	a.notes.Episode = &jobdir.EpisodeNote{Steps: e.steps, MaxSteps: e.maxSteps, End: e.end, Truncated: e.truncated()}
	metadata := cube.Pairs("n_steps", e.steps, "truncated", e.truncated())
	if r, ok := e.agent.(agent.Reporter); ok {
		reported := r.Report()
		a.res.AgentResult = newAgentResult(reported)
		if reported.Metadata != nil {
			for k, v := range reported.Metadata.All() {
				metadata.Set(k, v)
			}
		}
		a.res.AgentInfo = agentInfo(a.cfg.Agent, r.Info())
	}
	a.res.AgentResult.Metadata = metadata
}

// closeEpisode closes the log.
func (c *cubeRun) closeEpisode() {
	if c.episode == nil {
		return
	}
	if err := c.episode.log.Close(); err != nil {
		c.trial.warn("keeping the steps: %v", err)
	}
}
