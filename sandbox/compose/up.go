package compose

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

const (
	// lookAtServices is the time between two looks at containers that are
	// waited for; it doubles up to slowLook.
	lookAtServices = 50 * time.Millisecond
	slowLook       = 500 * time.Millisecond
	// settled is how long a service without a healthcheck must have run to
	// count as up, as docker compose takes it.
	settled = 500 * time.Millisecond
	// failureLog is how much of a failed container's log an error shows.
	failureLog = 2 << 10
)

// project is a compose project while it is brought up and until it is gone.
// What belongs to it carries its labels, so that nothing has to be remembered
// to be removed. It is confined to one goroutine until Create returns.
type project struct {
	e     *Engine
	spec  sandbox.Spec
	model *model
	id    string // value of labelSandbox
	main  Main

	images     *projectImages
	containers map[string][]string // ids by service, in order
	started    map[string]time.Time
}

// note says to the caller what a person should know.
func (p *project) note(is bool, format string, args ...any) {
	if is && p.spec.Warn != nil {
		p.spec.Warn(fmt.Sprintf(format, args...))
	}
}

// labels are on everything of the project, besides those of its files. They
// win: what belongs to the project is found by them.
func (p *project) labels(own map[string]string) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, own)
	maps.Copy(labels, map[string]string{
		engine.LabelOwner: p.spec.Labels.Owner.String(),
		engine.LabelJob:   p.spec.Labels.Job,
		engine.LabelTrial: p.spec.Labels.Trial,
		engine.LabelKeep:  engine.KeepLabel(p.spec.Keep),
		labelSandbox:      p.id,
		labelProject:      p.model.Name,
		labelVersion:      composeVersion,
	})
	return labels
}

// up makes networks, volumes and containers, and starts the services in the
// order of their dependencies, as "docker compose up --detach --wait" does.
func (p *project) up(ctx context.Context) error {
	if err := p.images.name(ctx); err != nil {
		return err
	}
	if err := p.makeNetworks(ctx); err != nil {
		return err
	}
	if err := p.makeVolumes(ctx); err != nil {
		return err
	}
	order, err := p.order()
	if err != nil {
		return err
	}
	for _, name := range order {
		if err := p.createContainers(ctx, name); err != nil {
			return err
		}
	}
	if err := p.start(ctx, order); err != nil {
		return err
	}
	return p.wait(ctx, order)
}

// order lists the services so that each comes after those it depends on.
func (p *project) order() ([]string, error) {
	var order []string
	state := map[string]int{} // 1 while on the way, 2 when listed
	var visit func(name string) error
	visit = func(name string) error {
		switch state[name] {
		case 1:
			return fmt.Errorf("service %q depends on itself", name)
		case 2:
			return nil
		}
		state[name] = 1
		s, ok := p.model.Services[name]
		if !ok { // a dependency that is not required and disabled
			state[name] = 2
			return nil
		}
		for _, needed := range slices.Sorted(maps.Keys(s.DependsOn)) {
			if err := visit(needed); err != nil {
				return err
			}
		}
		state[name] = 2
		order = append(order, name)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.model.Services)) {
		if err := visit(name); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// createContainers makes the containers of a service, not started.
func (p *project) createContainers(ctx context.Context, name string) error {
	s := p.model.Services[name]
	for n := 1; n <= s.GetScale(); n++ {
		o, err := p.containerOptions(&s, p.images.of[name], n)
		if err != nil {
			return err
		}
		isMain := name == mainService && n == 1
		if isMain {
			if err := p.main.Prepare(ctx, &o, p.images.of[name]); err != nil {
				return err
			}
		}
		// A request that is cut off may still create the container: it is let
		// finish, so that down finds it.
		createCtx, cancel := engine.Making(ctx)
		created, err := p.e.API.ContainerCreate(createCtx, o)
		cancel()
		if err == nil {
			p.containers[name] = append(p.containers[name], created.ID)
			err = p.joinNetworks(ctx, &s, n, created.ID)
		}
		if err == nil {
			err = p.putObjects(ctx, &s, created.ID)
		}
		if err == nil && isMain {
			err = p.main.Created(ctx, created.ID)
		}
		if err != nil {
			return p.failure(ctx, fmt.Errorf("service %q: %w", name, err), "")
		}
	}
	if name == mainService && len(p.containers[name]) == 0 {
		return fmt.Errorf("service %q has no container", name)
	}
	return nil
}

// start starts each service when what it depends on is as it wants it.
func (p *project) start(ctx context.Context, order []string) error {
	p.started = map[string]time.Time{}
	said := engine.NewReporter(p.spec.Progress, p.e.Now)
	every := lookAtServices
	for pending := order; len(pending) > 0; {
		var later []string
		for _, name := range pending {
			ready, err := p.ready(ctx, name)
			if err != nil {
				return err
			}
			if !ready {
				later = append(later, name)
				continue
			}
			if err := p.startService(ctx, name); err != nil {
				return err
			}
			p.started[name] = p.e.Now()
			every = lookAtServices
		}
		if pending = later; len(pending) > 0 {
			said.Say("waiting for what these depend on: " + strings.Join(pending, ", "))
			if err := clock.Sleep(ctx, every); err != nil {
				return err
			}
			every = min(2*every, slowLook)
		}
	}
	return nil
}

func (p *project) startService(ctx context.Context, name string) error {
	for i, id := range p.containers[name] {
		_, err := p.e.API.ContainerStart(ctx, id, client.ContainerStartOptions{})
		if err == nil && name == mainService && i == 0 {
			err = p.main.Started(ctx, id)
		}
		if err != nil {
			return p.failure(ctx, fmt.Errorf("starting service %q: %w", name, err), "")
		}
	}
	return nil
}

// ready reports whether a service's dependencies let it start.
func (p *project) ready(ctx context.Context, name string) (bool, error) {
	s := p.model.Services[name]
	for _, needed := range slices.Sorted(maps.Keys(s.DependsOn)) {
		d := s.DependsOn[needed]
		if _, there := p.model.Services[needed]; !there {
			continue
		}
		if _, running := p.started[needed]; !running {
			return false, nil
		}
		done, err := p.reached(ctx, needed, d.Condition)
		if err != nil && !d.Required && ctx.Err() == nil {
			p.note(true, "service %s starts although %v", name, err)
			continue
		}
		if err != nil || !done {
			return false, err
		}
	}
	return true, nil
}

// runningOrHealthy is the condition of up's own wait: healthy where there is a
// healthcheck, else running.
const runningOrHealthy = "running_or_healthy"

// wait returns when every service runs and is healthy. One whose success
// another depends on has to have ended well.
func (p *project) wait(ctx context.Context, order []string) error {
	conditions := map[string]string{}
	for _, s := range p.model.Services {
		for needed, d := range s.DependsOn {
			if d.Condition == types.ServiceConditionCompletedSuccessfully {
				conditions[needed] = d.Condition
			}
		}
	}
	said := engine.NewReporter(p.spec.Progress, p.e.Now)
	every := lookAtServices
	for pending := order; len(pending) > 0; {
		var later []string
		for _, name := range pending {
			condition := conditions[name]
			if condition == "" {
				condition = runningOrHealthy
			}
			done, err := p.reached(ctx, name, condition)
			if err != nil {
				return err
			}
			if !done {
				later = append(later, name)
			}
		}
		if pending = later; len(pending) > 0 {
			said.Say("waiting for services: " + strings.Join(pending, ", "))
			if err := clock.Sleep(ctx, every); err != nil {
				return err
			}
			every = min(2*every, slowLook)
		}
	}
	return nil
}

// reached looks whether all containers of a service fulfil a condition. An
// error says that they never will.
func (p *project) reached(ctx context.Context, name, condition string) (bool, error) {
	if condition == types.ServiceConditionStarted {
		return true, nil
	}
	for i, id := range p.containers[name] {
		r, err := p.e.API.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
		if err != nil {
			return false, fmt.Errorf("looking at service %q: %w", name, err)
		}
		if r.Container.State == nil {
			return false, fmt.Errorf("looking at service %q: the engine tells no state", name)
		}
		state := r.Container.State
		if name == mainService && i == 0 && state.Status == container.StateRunning {
			if ended, code, _ := p.main.Ended(); ended {
				// What runs in the container is the supervisor of its commands.
				state.Status, state.ExitCode = container.StateExited, code
			}
		}
		done, err := p.judge(name, strings.TrimPrefix(r.Container.Name, "/"), state, condition)
		if err != nil {
			return false, p.failure(ctx, err, id)
		}
		if !done {
			return false, nil
		}
	}
	return true, nil
}

// judge decides from the state of one container.
func (p *project) judge(service, name string, state *container.State, condition string) (bool, error) {
	ended := state.Status == container.StateExited || state.Status == container.StateDead
	if condition == types.ServiceConditionCompletedSuccessfully {
		if ended && state.ExitCode != 0 {
			return false, fmt.Errorf("service %q didn't complete successfully: exit %d", service, state.ExitCode)
		}
		return ended, nil
	}
	if ended {
		return false, fmt.Errorf("container %s exited (%d)", name, state.ExitCode)
	}
	if state.Health == nil || state.Health.Status == container.NoHealthcheck {
		if condition == types.ServiceConditionHealthy {
			return false, fmt.Errorf("container %s has no healthcheck configured", name)
		}
		return state.Status == container.StateRunning && p.hasSettled(service), nil
	}
	if state.Health.Status == container.Unhealthy {
		return false, fmt.Errorf("container %s is unhealthy%s", name, lastCheck(state.Health))
	}
	return state.Health.Status == container.Healthy, nil
}

// hasSettled reports whether a service has run for long enough. Main needs no
// time when its command is our own.
func (p *project) hasSettled(service string) bool {
	s := p.model.Services[service]
	if service == mainService && slices.Equal(s.Command, waits) && s.Entrypoint == nil && len(p.images.of[service].Entrypoint) == 0 {
		return true
	}
	return p.e.Now().Sub(p.started[service]) >= settled
}

// lastCheck is what the last check of an unhealthy container said.
func lastCheck(h *container.Health) string {
	if len(h.Log) == 0 || h.Log[len(h.Log)-1] == nil {
		return ""
	}
	text := strings.ToValidUTF8(strings.TrimSpace(h.Log[len(h.Log)-1].Output), "\uFFFD")
	if text == "" {
		return ""
	}
	return ": " + text[:min(len(text), failureLog)]
}

// failure makes the error of a project that does not come up, with the end of
// the log of the container at fault.
func (p *project) failure(ctx context.Context, err error, id string) error {
	if ctx.Err() != nil {
		return err
	}
	e := &Error{Project: p.model.Name, Output: err.Error(), Err: err}
	if id == "" {
		return e
	}
	if ids := p.containers[mainService]; len(ids) > 0 && id == ids[0] {
		if _, _, text := p.main.Ended(); strings.TrimSpace(text) != "" {
			text = strings.TrimSpace(text)
			e.Output += "\n" + text[max(0, len(text)-failureLog):]
			return e
		}
	}
	if text := strings.TrimSpace(engine.LastLog(ctx, p.e.API, id, failureLog)); text != "" {
		e.Output += "\n" + text
	}
	return e
}
