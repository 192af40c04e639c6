package trial

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/mcp"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/guarded"
	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
)

// desk is where an agent works that plays a cube's task by its tools: a sandbox of its own,
// in which nothing of the task is, and a server of tools that is its only way to the task.
type desk struct {
	trial  *attempt
	player *mcp.Player
	// outside: the agent's program is on this machine, and so is its way to the server.
	outside bool
	server  *http.Server
	serving sync.WaitGroup
	// instruction is what the agent was told; empty before.
	instruction string
}

// toolServer is the name of the server of a task's tools, as the agent is told of it.
const toolServer = "task"

// deskImage is the image of an agent's own sandbox unless its settings name one.
const deskImage = "ubuntu:24.04"

// deskDir is the directory in which an agent begins there. Programs look through the one that
// they are in, so that it is one that images have and that has little in it.
const deskDir = "/home"

// deskTask has the agent's own sandbox as the environment of a Harbor task: nothing but an
// image. Its directory is one that is not there.
func deskTask(cfg *jobdir.TrialConfig, hardened bool) (*harbor.Task, error) {
	image, err := agentConfig(cfg.Agent).SandboxImage()
	if err != nil {
		return nil, err
	}
	config, _, err := harbor.ParseConfig(nil)
	if err != nil {
		return nil, err
	}
	config.Environment.DockerImage, config.Environment.Workdir = new(cmp.Or(image, deskImage)), new(deskDir)
	if hardened {
		config.Isolate()
	}
	name := agentName(cfg.Agent)
	return &harbor.Task{Dir: filepath.Join(cfg.TrialsDir, cfg.TrialName, "desk"), Name: name, ShortName: name, Config: config}, nil
}

// worksApart reports whether the trial's agent plays a cube's task from a sandbox of its own.
func (b *agentBuilder) worksApart() bool {
	e, ok := b.r.Agents.Find(agentName(b.cfg.Agent))
	return ok && e.WorksApart(true)
}

// prepareDesk builds the agent of a cube's task that works apart, and plans its sandbox.
func (a *attempt) prepareDesk(agents *agentBuilder) (err error) {
	a.desk = &desk{trial: a, player: mcp.NewPlayer(mcp.Options{Name: "proctor", Version: version.Current().Version})}
	if a.task, err = deskTask(&a.cfg, a.r.Hardened); err != nil {
		return err
	}
	a.veil.cover(a.r.source().OfTrial(a.cfg, a.task))
	a.net = &networks{dir: a.dir, backend: a.r.Backend, cfg: &a.cfg, task: a.task, veil: a.veil}
	a.plans = &planner{r: a.r, cfg: &a.cfg, task: a.task, net: a.net, dir: a.dir, warn: a.warn, apart: true}
	if err := a.plans.check(); err != nil {
		return err
	}
	if a.equipment, err = findEquipment(a.task, a.cfg.Agent, a.r.home()); err != nil {
		return err
	}
	if slices.ContainsFunc(a.equipment.servers, func(s agent.MCPServer) bool { return s.Name == toolServer }) {
		return exception.Errorf(exception.ValueError, "an MCP server of the configuration is named %q, as that of the task's tools is: give it another name", toolServer)
	}
	agents.task = a.task
	made, err := a.prepareAgent(agents, true)
	if err != nil {
		return err
	}
	entry, _ := a.r.Agents.Find(made.Name)
	a.desk.outside = entry.Outside
	a.cube.player = player{Agent: a.desk.player, info: a.agent.Info(), trusted: entry.Trusted}
	if a.cube.player.maxSteps, err = made.MaxSteps(); err != nil {
		return err
	}
	return a.planEnvironment()
}

// open starts what the agent reaches: its model, and the tools of the task.
func (d *desk) open(ctx context.Context) error {
	a := d.trial
	if err := a.openGateway(ctx); err != nil {
		return err
	}
	l, err := d.listen(ctx)
	if err != nil {
		return fmt.Errorf("letting the agent reach the tools of the task: %w", err)
	}
	secret := "/" + rand.Text()
	d.server = d.player.HTTPServer(secret)
	d.serving.Go(func() { _ = d.server.Serve(l) })
	a.equipment.servers = append(a.equipment.servers, agent.MCPServer{
		Name: toolServer, Transport: "streamable-http", URL: "http://" + l.Addr().String() + secret, Required: true,
	})
	return a.equip(ctx)
}

// listen listens where the agent's program is.
func (d *desk) listen(ctx context.Context) (net.Listener, error) {
	if d.outside {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("listening on this machine's loopback interface: %w", err)
		}
		return l, nil
	}
	return listenIn(ctx, d.trial.sandbox())
}

// close ends the server. It may be called repeatedly, also where it never began.
func (d *desk) close() {
	if d == nil || d.server == nil {
		return
	}
	d.player.End(nil)
	_ = d.server.Close()
	d.serving.Wait()
}

// keepSteps brings the log of the episode to the agent's logs, where that of any episode is.
// While there is a sandbox that sees those, it lies beside them: it has the rewards, and the
// agent could write to it. What the agent put in its place goes.
func (d *desk) keepSteps() error {
	a := d.trial
	if a.cube.episode == nil { // none has begun
		return nil
	}
	from, dir := filepath.Join(a.dir, jobdir.StepsFile), a.hostDir("agent")
	root, err := bounded.OpenDir(dir)
	if err != nil {
		return err
	}
	err = root.RemoveAll(jobdir.StepsFile)
	if err = errors.Join(err, root.Close()); err != nil {
		return err
	}
	return os.Rename(from, filepath.Join(dir, jobdir.StepsFile))
}

// lingerLimit is how long an agent may go on when the episode has ended: it reads the answer
// of its last call, says something of it and writes its logs.
const lingerLimit = time.Minute

// errEpisodeOver is why an agent is ended that goes on for longer.
var errEpisodeOver = errors.New("the episode is over")

// work plays the episode with the agent's program beside it, until both have ended. What the
// program left running when it had to be ended is killed.
func (d *desk) work(ctx context.Context, c *cubeRun, deadline time.Time) (agent.Result, error) {
	a := d.trial
	marks, err := markAll(ctx, a.sandbox())
	if err != nil {
		return agent.Result{}, err
	}
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	var result agent.Result
	program := guarded.Isolated("the agent", func() (err error) {
		// An agent that ends because its time is up has not stopped.
		defer func() { d.player.Leave(context.Cause(ctx)) }()
		result, err = d.run(running, deadline)
		return err
	})
	err = c.apart(ctx, "the episode", c.episode.play)
	d.player.End(c.episode.failure())
	over := time.AfterFunc(lingerLimit, func() { end(errEpisodeOver) })
	defer over.Stop()
	if err != nil {
		end(err)
	}
	programErr := <-program
	switch {
	case err != nil:
	case running.Err() == nil: // it ended by itself
		return result, programErr
	default:
		a.warn("the agent went on after the episode had ended, and was ended")
	}
	for _, m := range marks {
		if _, killErr := killTree(context.WithoutCancel(ctx), m.sb, m.mark, "episode over"); killErr != nil {
			a.note(killErr)
		}
	}
	return result, err
}

// run runs the agent once the task is there.
func (d *desk) run(ctx context.Context, deadline time.Time) (agent.Result, error) {
	obs, err := d.player.First(ctx)
	if err != nil {
		return agent.Result{}, err
	}
	a := d.trial
	if d.instruction, err = d.instruct(ctx, obs); err != nil {
		return agent.Result{}, err
	}
	return a.agent.Run(ctx, a.agentEnv(nil), agent.Task{Instruction: d.instruction, Deadline: deadline})
}

// howToPlay tells an agent what it is that counts.
const howToPlay = `

Work on this with the tools of the MCP server "` + toolServer + `" alone: only what they do counts. The
directory that you are in has nothing of the task. When there is nothing left to do, call ` + cube.StopName + ` if
there is such a tool, and end.
`

// instruct makes the first observation an instruction: its images lie in files of the sandbox.
func (d *desk) instruct(ctx context.Context, obs *cube.Observation) (string, error) {
	file := func(i int) string { return path.Join(agent.TaskDir, "image-"+strconv.Itoa(i+1)+".png") }
	text, images := mcp.Instruction(obs, file)
	for i, png := range images {
		if err := sandbox.UploadBytes(ctx, d.trial.sandbox(), png, file(i), 0o644); err != nil {
			return "", fmt.Errorf("bringing an image of the task to the agent: %w", err)
		}
	}
	return text + howToPlay, nil
}

// playApart lets the agent play from its desk, and reads its logs.
func (c *cubeRun) playApart(ctx context.Context, s *stage, limit environment.Limit) error {
	a := c.trial
	var deadline time.Time
	if d := limit.Duration(); d >= 0 {
		deadline = a.r.Now().Add(d)
	}
	plan := a.net.plan(nil)
	return a.working(ctx, s, plan.AgentPhase, func(ctx context.Context) (agent.Result, error) {
		return a.desk.work(ctx, c, deadline)
	})
}
