package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/layer"
	"github.com/proctor-run/proctor/agent/logs"
	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/internal/guarded"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
)

// Runner runs trials in the sandboxes of one backend. Its fields are set
// before the first Run; Run may be called concurrently. Only Backend is needed.
type Runner struct {
	Backend sandbox.Backend
	// Lookup finds variables of the host's environment, for templates; nil means
	// an empty environment.
	Lookup harbor.Lookup
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Owner is put on everything external; the zero value means procid.Self.
	Owner procid.ID
	// Emit is called with each event, by the goroutine of the trial; it may be nil.
	Emit func(Event)
	// Kept is called with the name of a trial whose sandbox was kept, and how to get
	// in, by the goroutine of the trial; it may be nil.
	Kept func(trial, hint string)
	// JobLog receives what trial logs receive; may be nil.
	JobLog io.Writer
	// OutputLimit bounds each output file that is kept, in bytes; 0 means
	// DefaultOutputLimit.
	OutputLimit int64
	// SealedVerifier closes the reward channel to everyone but the tests, see
	// verify.Spec: what the agent left running is killed before they start, and
	// reward files that others may have written are refused.
	SealedVerifier bool
	// AllowEngineSocket lets mounts of the configuration show a container engine's
	// socket, see CheckMounts.
	AllowEngineSocket bool
	// Hardened says that the sandboxes of the backend are hardened, see
	// sandbox.Spec. A sandbox whose task and configuration say nothing of the
	// network then has none.
	Hardened bool
	// TaskDir finds the directory on this machine of a task that is not local;
	// nil means that only local ones can be run.
	TaskDir func(jobdir.TaskConfig) (string, error)
	// Cube, when set, finds the task of a configuration among those of a cube;
	// trials then run it through CUBE's layer.
	Cube func(cfg jobdir.TrialConfig) (*CubeTask, error)
	// Agents that trials may name: those that come with proctor are agents.All of
	// package agent/agents. It must be set.
	Agents agent.Registry
	// Layers keep what was installed of agents' programs, see [Runner.Installer]; nil
	// installs them in each sandbox.
	Layers *layer.Store
	// Models opens the models that agents call themselves, for all trials: an
	// [llm.Client], most often. Nil means that there are none, and such agents fail.
	Models llm.Opener
	// Budget bounds what the models of one attempt of a trial may be used for. Beyond it
	// the agent's calls are refused, and what it has done is verified, as after its time
	// limit.
	Budget llm.Budget
	// Meter counts what the models of all trials are used for, and may have a budget of
	// its own; nil for none. A trial that it leaves not a single call ends as cancelled.
	Meter *llm.Meter
	// Gateway says whether commands of agents reach models through this program; empty is
	// GatewayAuto. Models must then be an [llm.Router].
	Gateway GatewayMode
	// Setups, when set, are those of the trials that will be run; nil lets each agent
	// install what it needs itself.
	Setups *Setups
	// Replay, when set, finds the recorded answers that the agent of a trial gets in the
	// place of those of Models: its models then reach no network. It is asked once for
	// each attempt whose agent opens a model, and may be called concurrently.
	Replay func(jobdir.TrialConfig) (*llm.Replay, error)
	// Secrets, when set, puts values in place of what a configuration holds
	// redacted. Files keep the redacted text.
	Secrets func(jobdir.TrialConfig) jobdir.TrialConfig
	// Environ is this machine's environment, KEY=VALUE. Values in it that look like
	// secrets are redacted in all that trials write, as those of configurations and
	// tasks are.
	Environ []string
	// SecretNames are variables and settings whose values are redacted, whatever they
	// look like.
	SecretNames []string
	// Builds bounds how many trials start environments at a time whose images are built,
	// and Verifiers how many verify at a time; nil ones bound nothing. Until its turn
	// comes a trial is in none of both phases.
	Builds, Verifiers *Lane
	// Abandon, when it is closed, gives up at once what does not return although its
	// context has ended, instead of after a few seconds; nil is never closed.
	Abandon <-chan struct{}
	// Backstop ends a trial that takes longer as a whole, whatever its phases may take; 0
	// means never. The sandbox is then removed as after any other end.
	Backstop time.Duration
	// Amend, when set, changes a Harbor task after it was loaded and before
	// anything else. Its checksum stays that of the directory.
	Amend func(cfg jobdir.TrialConfig, task *harbor.Task)
}

// defaultOutputLimit is how much output of an agent or a verifier is kept, in
// bytes. The beginning and the end are kept, the cut is marked.
const defaultOutputLimit = 16 << 20

// Time limits after the work, when the trial's own context may have ended.
const (
	recoverLimit = 60 * time.Second
	killLimit    = 30 * time.Second
	closeLimit   = 2 * time.Minute // of a cube's task
)

// Run runs one attempt of a trial in its directory, TrialsDir/TrialName, and
// writes its files. Whatever goes wrong with the trial is in the result, under
// Harbor's names; an error means that the directory or the result could not be
// written. When ctx ends, the trial ends as cancelled. In every case no
// sandbox is left.
//
// The phases and what follows from an error in each are those of the Harbor
// job format, section 3.2.
func (r *Runner) Run(ctx context.Context, cfg jobdir.TrialConfig, attemptNumber int) (*jobdir.TrialResult, error) {
	r, err := r.WithDefaults()
	if err != nil {
		return nil, fmt.Errorf("starting trial %q: %w", cfg.TrialName, err)
	}
	r.Now = clock.Steady(r.Now) // what a trial took does not depend on a clock that is set
	a, err := r.begin(cfg, attemptNumber)
	if err != nil {
		return nil, fmt.Errorf("starting trial %q: %w", cfg.TrialName, err)
	}
	a.emit(EventStart, "")
	within, stop := r.within(ctx)
	defer stop()
	// Code of agents that do not belong to a cube runs in here, too.
	if err := <-guarded.Isolated("the trial", func() error { return a.work(within) }); err != nil {
		a.fail(within, err)
	}
	a.destroy(ctx)
	if a.desk != nil {
		if err := a.desk.keepSteps(); err != nil {
			a.warn("keeping the steps: %v", err)
		}
	}
	a.recheck()
	a.disarm()
	res, err := a.finish(ctx)
	if err != nil {
		return nil, fmt.Errorf("writing the result of trial %q: %w", cfg.TrialName, err)
	}
	return res, nil
}

// within returns a context that ends when the backstop of a trial that begins now
// passes: the cause is then the trial's error.
func (r *Runner) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.Backstop <= 0 {
		return ctx, func() {}
	}
	limit := environment.Limit{Sec: new(r.Backstop.Seconds())}
	return context.WithTimeoutCause(ctx, r.Backstop,
		exception.Errorf(exception.AgentTimeoutError, "trial exceeded backstop timeout of %s seconds", limit))
}

// attempt is one run of a trial. It is confined to one goroutine.
type attempt struct {
	recorder
	r   *Runner
	cfg jobdir.TrialConfig

	// Set by prepare and, where they need no Harbor task, by prepareCube.
	limits       limits
	task         *harbor.Task
	net          *networks
	plans        *planner
	artifacts    *artifacts
	equipment    equipment
	meter        *llm.Meter          // of what the agent's models are used for
	calls        *modelCalls         // of the agent; nil where the runner has no models
	gateway      *modelGateway       // of the agent's commands; nil for none
	direct       *agent.ModelAccess  // of them where there is no gateway; nil for none
	logs         logs.Reader         // of the agent's logs; nil for none
	installation *agent.Installation // of the agent's program; nil for none
	known        *installed          // of the agent's program; nil for nothing
	agent        agent.Agent         // nil for a task that is stepped
	cube         *cubeRun            // nil for any other
	desk         *desk               // of the agent of a cube's task; nil for one that works in the task's own place
	trusted      bool                // the agent, see agent.Entry
	alone        bool                // the agent's installation is shared with no other trial
	builds       bool                // the environment's images, or may
	mountsMore   bool                // the sandbox can write to what others may see
	env          *environment.Environment

	baseline  baseline   // when the environment was ready
	collected bool       // the artifacts of the current stage
	harmless  bool       // what sandboxes left in the directory
	verdicts  []*verdict // in the order of the verifications
}

func (r *Runner) begin(cfg jobdir.TrialConfig, n int) (*attempt, error) {
	dir, err := filepath.Abs(filepath.Join(cfg.TrialsDir, cfg.TrialName))
	if err != nil {
		return nil, err
	}
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	full := cfg
	if r.Secrets != nil {
		full = r.Secrets(cfg)
	}
	veil := r.veil(full)
	log, err := openLog(filepath.Join(dir, "trial.log"), r.JobLog, veil)
	if err != nil {
		return nil, err
	}
	started := jobdir.UTC(r.Now())
	rec := recorder{
		dir: dir, log: log, veil: veil, phase: phasePreparation, now: r.Now, onEvent: r.Emit,
		res: &jobdir.TrialResult{
			ID:        uuid.New(),
			TaskName:  taskBaseName(cfg.Task),
			TrialName: cfg.TrialName,
			TrialURI:  jobdir.URI(dir),
			TaskID:    cfg.Task.ID(),
			Source:    cfg.Task.Source,
			Config:    cfg,
			AgentInfo: agentInfo(cfg.Agent, agent.Info{}),
			StartedAt: &started,
		},
		notes: &jobdir.Notes{Schema: jobdir.NotesSchema, Attempt: n, Backend: r.Backend.Name(), Runtime: sandbox.RuntimeOf(r.Backend), Errors: []jobdir.NotedError{}, Hardened: r.Hardened},
	}
	a := &attempt{recorder: rec, r: r, cfg: full, meter: llm.NewMeter(llm.OfTrial, r.Budget, r.Meter)}
	if err := atomicfile.WriteUnsynced(filepath.Join(dir, "config.json"), veil.bytes(cfg.AppendJSON(nil, r.Lookup)), 0o644); err != nil {
		return nil, errors.Join(err, log.close())
	}
	return a, nil
}

// work goes through the phases. The error that it returns is the one that
// ended the trial; errors that the trial survives are recorded inside.
func (a *attempt) work(ctx context.Context) error {
	source, err := a.findCube()
	if err != nil {
		return err
	}
	if source != nil {
		return a.runCube(ctx, source)
	}
	if err := a.prepare(); err != nil {
		return err
	}
	if err := a.setUpEnvironment(ctx); err != nil {
		return err
	}
	if err := a.openGateway(ctx); err != nil {
		return err
	}
	a.setBaseline(ctx)
	if err := a.equip(ctx); err != nil {
		return err
	}
	if a.cube != nil {
		return a.runHarborCube(ctx)
	}
	if err := a.setUpAgent(ctx); err != nil {
		return err
	}
	if a.task.Config.HasSteps() {
		return a.runSteps(ctx)
	}
	return a.runStage(ctx, singleCourse{a}, &stage{results: a.whole(), instruction: a.task.Instruction, last: true})
}

// fail records the error that ended the trial and saves what the agent left. The
// manifest of artifacts is written even if the environment never started.
func (a *attempt) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		err = errCancelled
		if backstop, ok := errors.AsType[*exception.Error](context.Cause(ctx)); ok {
			err = backstop
		}
	}
	a.record(err)
	if a.env == nil || a.desk != nil || a.collected {
		return
	}
	rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recoverLimit)
	defer cancel()
	a.collectArtifacts(rctx, nil)
}

// destroy removes the sandbox, or stops it when it is to be kept. Its error is the
// trial's exception only if there is no other.
func (a *attempt) destroy(ctx context.Context) {
	a.desk.close()
	a.closeGateway()
	if a.cube != nil {
		a.cube.close(ctx)
	}
	if a.env == nil || a.env.Sandbox() == nil {
		return
	}
	if KeepsSandbox(a.cfg.Environment) {
		hint, err := a.env.Keep(ctx)
		if err == nil {
			a.notes.Kept = hint
			a.log.printf("The sandbox is kept: %s", hint)
			if a.r.Kept != nil {
				a.r.Kept(a.cfg.TrialName, hint)
			}
			return
		}
		if !errors.Is(err, sandbox.ErrUnsupported) {
			a.warn("keeping the sandbox: %v", err)
		}
	}
	if err := a.env.Close(ctx); err != nil {
		a.enter(phaseTeardown)
		a.record(fmt.Errorf("removing the sandbox: %w", err))
	}
}

func (a *attempt) finish(ctx context.Context) (*jobdir.TrialResult, error) {
	if a.net != nil {
		if err := a.net.close(a.now()); err != nil {
			a.warn("keeping the log of the egress proxy: %v", err)
		}
	}
	if a.gateway != nil {
		a.notes.Gateway = a.gateway.note()
	}
	a.closeCalls()
	a.scanFiles()
	a.open()
	finished := jobdir.UTC(a.r.Now())
	a.res.FinishedAt = &finished
	notes, err := a.writeNotes()
	if err != nil {
		a.log.printf("Warning: %v", err)
	}
	data := a.veiledResult()
	err = a.checkRoom()
	if err == nil {
		err = atomicfile.Write(filepath.Join(a.dir, "result.json"), data, 0o644)
	}
	if ctx.Err() != nil {
		a.emit(EventCancel, "")
	}
	if a.onEvent != nil {
		end := a.event(EventEnd, "")
		end.Result, end.NotesFile, end.Suspicions = a.res, notes, len(a.notes.Suspicions())
		if err == nil {
			end.ResultFile = new(jobdir.DigestOf(data))
		}
		a.onEvent(end)
	}
	if err := errors.Join(err, a.log.close()); err != nil {
		return nil, err
	}
	return a.res, nil
}

// sandbox returns the sandbox of the agent, nil before and after.
func (a *attempt) sandbox() sandbox.Sandbox {
	switch {
	case a.env != nil:
		return a.env.Sandbox()
	case a.cube != nil:
		return a.cube.sb
	}
	return nil
}

// labels are put on all sandboxes of a trial.
func (r *Runner) labels(cfg *jobdir.TrialConfig) sandbox.Labels {
	labels := sandbox.Labels{Trial: cfg.TrialName, Owner: r.Owner}
	if cfg.JobID != nil {
		labels.Job = cfg.JobID.String()
	}
	return labels
}

func (r *Runner) outputLimit() int64 {
	if r.OutputLimit > 0 {
		return r.OutputLimit
	}
	return defaultOutputLimit
}

// agentInfo describes the agent in results.
func agentInfo(cfg jobdir.AgentConfig, info agent.Info) jobdir.AgentInfo {
	name := info.Name
	if name == "" && cfg.Name != nil {
		name = *cfg.Name
	}
	version := info.Version
	if version == "" {
		version = jobdir.UnknownVersion
	}
	out := jobdir.AgentInfo{Name: name, Version: version}
	if cfg.ModelName != nil {
		out.ModelInfo = jobdir.SplitModel(*cfg.ModelName)
	}
	return out
}
