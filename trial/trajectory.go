package trial

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/logs"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

// trajectoryFile is the one of an agent's log directory that has what it did.
const trajectoryFile = "trajectory.json"

// readLogs makes a trajectory of what the agent of a stage logged, fills in what it used
// where that is not known, and returns err or, where the agent says that its run failed and
// err is none that says more, that failure.
func (a *attempt) readLogs(ctx context.Context, s *stage, err error) error {
	if a.logs == nil || ctx.Err() != nil || s.agentResult() == nil || a.sandbox() == nil {
		return err
	}
	if downloadErr := a.fetchLogs(ctx); downloadErr != nil {
		a.warn("the agent's logs cannot be fetched: %v", downloadErr) // what it printed is here
	}
	name, dir := agentName(a.cfg.Agent), a.hostDir("agent")
	in := logs.Input{Dir: dir, Instruction: s.instruction, Session: a.res.ID.String(), Prices: a.prices(), Version: a.agent.Info().Version}
	if a.cfg.Agent.ModelName != nil {
		in.Model = *a.cfg.Agent.ModelName
	}
	made, readErr := logs.Read(name, a.logs, in)
	if readErr != nil {
		a.warn("the agent's logs give no trajectory: %v", readErr)
		return err
	}
	for _, what := range made.Truncated {
		a.warn("the agent's logs are not whole: %s", what)
	}
	if made.Trajectory != nil {
		a.leaveUnpriced(made)
		if writeErr := made.WriteFile(filepath.Join(dir, trajectoryFile), a.veil.bytes); writeErr != nil {
			a.warn("keeping the agent's trajectory: %v", writeErr)
		}
	}
	fillIn(s.agentResult(), made)
	return orSaid(err, name, made, s.answered || positive(s.agentResult().NOutputTokens))
}

// leaveUnpriced leaves away a cost that is none because the agent was told of no prices.
func (a *attempt) leaveUnpriced(made *logs.Converted) {
	if m := a.modelAccess(); m == nil || m.Info.Prices != nil {
		return
	}
	unpriced := func(cost *float64) *float64 {
		if cost != nil && *cost == 0 {
			return nil
		}
		return cost
	}
	t := made.Trajectory
	for i := range t.Steps {
		if m := t.Steps[i].Metrics; m != nil {
			m.CostUSD = unpriced(m.CostUSD)
		}
	}
	if t.FinalMetrics != nil {
		t.FinalMetrics.CostUSD = unpriced(t.FinalMetrics.CostUSD)
	}
	made.CostUSD = unpriced(made.CostUSD)
}

// fetchLogs brings the agent's logs to this machine where they are not there.
func (a *attempt) fetchLogs(ctx context.Context) error {
	a.env.OwnLogs(ctx)
	if a.r.Backend.Capabilities().Mounted {
		return nil
	}
	root, err := bounded.OpenDir(a.hostDir("agent"))
	if err != nil {
		return err
	}
	err = sandbox.DownloadDir(ctx, a.sandbox(), harbor.AgentLogsDir, root, sandbox.DefaultDownloadLimits)
	return errors.Join(err, root.Close())
}

// prices are those that are known of the agent's model.
func (a *attempt) prices() func(string) (logs.Price, bool) {
	m := a.modelAccess()
	if m == nil || m.Info.Prices == nil {
		return nil
	}
	p := m.Info.Prices
	return func(string) (logs.Price, bool) {
		return logs.Price{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead}, true
	}
}

// fillIn takes from the logs what the agent used, where nothing else has told
// (Harbor agent format, section 1.2). What no use can be is left away: the agent could
// have written it.
func fillIn(r *jobdir.AgentResult, made *logs.Converted) {
	if r.NInputTokens != nil || r.NCacheTokens != nil || r.NOutputTokens != nil || r.CostUSD != nil || r.Metadata != nil || r.RolloutDetails != nil {
		return
	}
	count := func(n *value.Int) *value.Int {
		if n != nil && n.Sign() < 0 {
			return nil
		}
		return n
	}
	r.NInputTokens, r.NCacheTokens, r.NOutputTokens = count(made.InputTokens), count(made.CachedTokens), count(made.OutputTokens)
	if usd := made.CostUSD; usd != nil && *usd >= 0 {
		r.CostUSD = usd
	}
}

func positive(n *value.Int) bool { return n != nil && n.Sign() > 0 }

// orSaid is what the agent says of why its run failed, where its exit code does not tell. A
// run in which no model ever answered is no work to judge; the gateway and what the agent
// used tell whether one did, so that an agent cannot get out of being judged by what it
// writes into its logs.
func orSaid(err error, name string, made *logs.Converted, answered bool) error {
	_, exited := errors.AsType[*agent.ExitError](err)
	if made.Failure == "" || err != nil && !exited {
		return err
	}
	if typ := cmp.Or(made.FailureType, logs.FailureType(made.Failure)); typ != "" && !answered {
		return exception.Errorf(typ, "%s says that its run failed: %s", name, made.Failure)
	}
	if err != nil {
		return err
	}
	return exception.Errorf(exception.NonZeroAgentExitCodeError, "%s ended as if all were well, but says that its run failed: %s", name, made.Failure)
}
