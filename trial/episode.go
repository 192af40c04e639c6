package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
)

// defaultMaxSteps bounds an episode whose task recommends nothing.
const defaultMaxSteps = 10_000

// episode is an agent playing a task (CUBE, section 10.6).
type episode struct {
	task     *cube.Task
	agent    cube.Agent
	maxSteps int
	log      *stepLog

	// What play writes. One that was given up, because it does not return, may
	// still be playing: it and whoever asks hold mu.
	mu    sync.Mutex
	steps int
	// obs is what the agent saw last, or would have seen next.
	obs *cube.Observation
	// last is the turn that ended the task. It is completed by the verification.
	last *lastTurn
	end  string // one of jobdir's ends of episodes; empty while it is being played
}

// lastTurn is a turn that has yet to be scored.
type lastTurn struct {
	*cube.Turn
	actions []cube.Action
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
// is reached. The step that ends the task is not scored: that is the verification's.
func (e *episode) play(ctx context.Context) (err error) {
	defer func() {
		end := jobdir.EpisodeFailed
		if exception.TypeOf(err) == exception.BudgetExceededError {
			end = jobdir.EpisodeBudget
		}
		switch {
		case err == nil:
		case ctx.Err() != nil:
			e.cut(end)
		default:
			e.finish(end)
		}
	}()
	obs, _, err := e.task.Reset(ctx)
	if err != nil {
		return err
	}
	e.saw(obs)
	for range e.maxSteps {
		actions, err := e.agent.Act(ctx, obs, e.offered()) //nolint:contextcheck // an action set has no context
		if err != nil {
			return err
		}
		if e.stops(actions) {
			e.finish(jobdir.EpisodeStopped)
			return nil
		}
		out, err := e.step(ctx, actions)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if out == nil { // the task has ended
			return nil
		}
		obs = out.Obs
	}
	e.finish(jobdir.EpisodeMaxSteps)
	return nil
}

// saw notes what the agent sees next.
func (e *episode) saw(obs *cube.Observation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.obs = obs
}

// finish notes how the episode ended; the first end counts.
func (e *episode) finish(end string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.end == "" {
		e.end = end
	}
}

// cut notes that the episode was ended from outside, whatever the step that was under way
// made of that.
func (e *episode) cut(end string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end = end
}

// failure is the error of the action that ended the task; nil for none.
func (e *episode) failure() *cube.StepError {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last == nil {
		return nil
	}
	return e.last.Output().Error
}

// note is how the episode went so far.
func (e *episode) note() *jobdir.EpisodeNote {
	e.mu.Lock()
	defer e.mu.Unlock()
	// A limit ended the episode, not the task or the agent.
	truncated := e.end == jobdir.EpisodeMaxSteps || e.end == jobdir.EpisodeTimeout || e.end == jobdir.EpisodeBudget
	return &jobdir.EpisodeNote{Steps: e.steps, MaxSteps: e.maxSteps, End: e.end, Truncated: truncated}
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

// stops reports whether a turn ends the episode without a step: the agent has nothing
// more to do. So does the stop action of a task that rejects it and has no action of
// that name. The task is then evaluated as it is, with what was seen last.
func (e *episode) stops(actions []cube.Action) bool {
	if len(actions) == 0 {
		return true
	}
	return actions[0].Name == cube.StopName && !e.task.AcceptsStop() &&
		!slices.ContainsFunc(e.task.Tool().Actions(), isStop)
}

// step takes a turn. The output is nil when the task has ended with it.
func (e *episode) step(ctx context.Context, actions []cube.Action) (*cube.EnvironmentOutput, error) {
	turn, err := e.task.TakeTurn(ctx, actions...)
	ended := err == nil && turn.Output().Done
	stopped := ended && actions[0].Name == cube.StopName && e.task.AcceptsStop()
	if !stopped {
		e.mu.Lock()
		e.steps++
		e.mu.Unlock()
	}
	switch {
	case err != nil:
		// The results of the actions before the failure are kept.
		var out *cube.EnvironmentOutput
		if turn != nil {
			out = turn.Output()
		}
		return nil, e.log.failed(actions, out, err)
	case stopped:
		e.ended(&lastTurn{turn, actions}, jobdir.EpisodeStopped)
		return nil, nil
	case ended:
		e.ended(&lastTurn{turn, actions}, jobdir.EpisodeDone)
		return nil, nil
	}
	out, err := turn.Complete(ctx)
	if err != nil {
		return nil, e.log.failed(actions, out, err)
	}
	e.saw(out.Obs)
	return out, e.log.add(actions, out, nil)
}

func (e *episode) ended(last *lastTurn, end string) {
	e.finish(end)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = last
}

// evaluation is what scoring an episode gave.
type evaluation struct {
	reward float64
	info   cube.Info
}

// evaluate scores the episode, once: the reward of the step that ended the task is
// the result, and only otherwise the task is evaluated, with what was seen last.
func (e *episode) evaluate(ctx context.Context) (evaluation, error) {
	note := e.note()
	last, obs := e.takeLast()
	if last != nil {
		out, err := last.Complete(ctx)
		if err != nil {
			return evaluation{}, e.log.failed(last.actions, out, err)
		}
		return evaluation{out.Reward, out.Info}, e.log.add(last.actions, out, nil)
	}
	out := &cube.EnvironmentOutput{Obs: obs, Truncated: note.Truncated}
	var err error
	out.Reward, out.Info, err = e.task.Evaluate(ctx, obs)
	if out.Obs == nil { // the task was never reset
		out.Obs = &cube.Observation{}
	}
	if err != nil {
		out.Reward, out.Info = 0, nil
		return evaluation{}, e.log.failed(nil, out, err)
	}
	return evaluation{out.Reward, out.Info}, e.log.add(nil, out, nil)
}

// takeLast takes the turn that ended the task, to be scored and written to the log,
// and what was seen last.
func (e *episode) takeLast() (*lastTurn, *cube.Observation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	last := e.last
	e.last = nil
	return last, e.obs
}

// close closes the log. A last turn that nobody scored is in it, too.
func (e *episode) close() error {
	var err error
	if last, _ := e.takeLast(); last != nil {
		err = e.log.add(last.actions, last.Output(), nil)
	}
	return errors.Join(err, e.log.close())
}

// beginEpisode opens the episode's log. It is closed by closeEpisode.
func (c *cubeRun) beginEpisode() error {
	dir := c.trial.hostDir("agent")
	if c.trial.desk != nil {
		dir = c.trial.dir // see keepSteps
	}
	log, err := newStepLog(dir, c.trial.r.outputLimit(), c.trial.veil)
	if err != nil {
		return fmt.Errorf("keeping the steps: %w", err)
	}
	c.episode = &episode{task: c.task, agent: c.player.Agent, maxSteps: limitOf(c.player.maxSteps, c.task), log: log}
	return nil
}

// noteEpisode records how the episode ended.
func (c *cubeRun) noteEpisode() {
	a, e := c.trial, c.episode
	note := e.note()
	if note.End == jobdir.EpisodeMaxSteps {
		a.warn("the agent did not stop within %d steps", e.maxSteps)
	}
	a.notes.Episode = note
	metadata := cube.Pairs("n_steps", note.Steps, "truncated", note.Truncated)
	if own := a.res.AgentResult.Metadata; own != nil {
		for k, v := range own.All() {
			metadata.Set(k, v)
		}
	}
	if r, ok := e.agent.(agent.Reporter); ok && !c.abandoned {
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
	if err := c.episode.close(); err != nil {
		c.trial.warn("keeping the steps: %v", err)
	}
}
