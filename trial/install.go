package trial

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/layer"
	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/redact"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/gateway"
	"github.com/proctor-run/proctor/sandbox"
)

// Installer installs the program of a configuration's agent for the image of its task,
// before the trial.
type Installer struct {
	// Agent is the entry's name, Version the one that is installed, Image the task's, for
	// people.
	Agent, Version, Image string
	// Key tells apart what is installed: another trial's Installer with the same key does
	// the same.
	Key string

	store *layer.Store
	in    *agent.Installation
	image layer.Image
	build layer.Builder
}

// Installer returns what installs the program of a trial's agent; nil where there is
// nothing to install, or it has been done.
//
// A task or a configuration that trials would find mistakes in has none: trials tell.
func (r *Runner) Installer(cfg jobdir.TrialConfig) *Installer {
	r, err := r.WithDefaults()
	if err != nil {
		return nil
	}
	entry, known := r.Agents.Find(agentName(cfg.Agent))
	if !known || entry.Install == nil || r.Layers == nil || !r.Backend.Capabilities().Mounted {
		return nil
	}
	if r.Secrets != nil {
		cfg = r.Secrets(cfg)
	}
	task, err := r.placeOf(&cfg)
	if err != nil {
		return nil
	}
	b := &agentBuilder{r: r, cfg: &cfg, task: task}
	in, err := b.installation()
	if in == nil || err != nil {
		return nil
	}
	p := &planner{r: r, cfg: &cfg, task: task, warn: func(string, ...any) {}}
	spec, err := p.installSpec(in)
	if err != nil {
		return nil
	}
	image, err := imageOf(&spec, r.Backend.Capabilities())
	if err != nil {
		return nil
	}
	if _, found := r.Layers.Find(in, image); found {
		return nil
	}
	hide := r.veil(cfg)
	hide.cover(r.source().OfTrial(cfg, task))
	return &Installer{
		Agent: in.Agent, Version: in.Version, Image: image.Name, Key: in.Digest + "\x00" + in.Version + "\x00" + image.ID,
		store: r.Layers, in: in, image: image,
		build: layer.Builder{
			Create: func(ctx context.Context) (sandbox.Sandbox, error) { return r.Backend.Create(ctx, spec) },
			Env:    agent.Env{User: environment.AgentUser(task, nil), OutputLimit: r.outputLimit(), Lookup: r.Lookup, Redact: hide.writer},
		},
	}
}

// placeOf is the task in whose environment a trial's agent works: for a cube's the agent's own.
func (r *Runner) placeOf(cfg *jobdir.TrialConfig) (*harbor.Task, error) {
	if r.Cube != nil {
		source, err := r.Cube(*cfg)
		if err != nil {
			return nil, err
		}
		if source != nil {
			return deskTask(cfg, r.Hardened)
		}
	}
	task, err := r.load(cfg)
	if err == nil && r.Amend != nil {
		r.Amend(*cfg, task)
	}
	return task, err
}

// Install does it. What it made besides what is kept is removed.
func (i *Installer) Install(ctx context.Context) (layer.Layer, error) {
	return i.store.Build(ctx, i.in, i.image, i.build)
}

// errNoInstall: the other services of a compose project would have a network that their
// task keeps from them.
var errNoInstall = errors.New("an agent is not installed for a compose project without the whole network")

// installSpec describes the sandbox in which an agent's program is installed: the agent's,
// with what the installation has to reach and none of the trial's directories. Where the
// task is kept from the network, the variables of the environment, which may hold secrets,
// are kept from the image here.
func (p *planner) installSpec(in *agent.Installation) (sandbox.Spec, error) {
	network := layer.Network(in, p.r.Backend.Capabilities())
	open := p.task.Config.PlanNetwork(nil, nil, nil).AgentBaseline.Mode == harbor.Public
	if harbor.Has(p.task.EnvironmentDir(), harbor.ComposeFile) || len(p.cfg.Environment.ExtraDockerCompose) > 0 {
		if !open {
			return sandbox.Spec{}, errNoInstall
		}
		network = sandbox.Network{Mode: sandbox.NetworkPublic} // a project has no allow list
	}
	plan := p.environment()
	plan.OverrideGPUs, plan.OverrideTPU = new(0), nil
	spec, err := plan.Spec(environment.Request{
		Name: p.cfg.TrialName + "-" + in.Agent, Network: harbor.Network{Mode: harbor.NetworkMode(network.Mode), AllowedHosts: network.Hosts},
		ExtraCompose: p.cfg.Environment.ExtraDockerCompose, ForceBuild: p.cfg.Environment.ForceBuild,
	})
	spec.Image.KeepImage = true // the trials want it
	if !open {
		spec.Env = slices.DeleteFunc(spec.Env, func(assignment string) bool {
			name, _, _ := strings.Cut(assignment, "=")
			return name != "PATH" && !strings.HasSuffix(strings.ToUpper(name), "_PROXY")
		})
	}
	return spec, err
}

// maxCompose is the size of the largest compose file that is read, in bytes.
const maxCompose = 4 << 20

// imageOf tells the image of a sandbox apart from others: by what a build is made of, or by
// its reference. The files of a compose project can lead to others anywhere, so that its
// directory is part of what it is: another task with the same files is not the same.
func imageOf(spec *sandbox.Spec, can sandbox.Capabilities) (layer.Image, error) {
	img := spec.Image
	switch {
	case can.OwnRoot:
		return layer.Image{ID: "this machine", Name: "this machine"}, nil
	case spec.Compose == nil && img.Ref != "" && (img.Build == nil || !img.ForceBuild):
		return layer.Image{ID: "ref " + img.Ref, Name: img.Ref}, nil
	}
	var parts []string
	if spec.Compose != nil {
		parts = append(parts, "compose", strconv.Quote(spec.Compose.Dir))
		if img.Build == nil {
			sum, err := harbor.Checksum(spec.Compose.Dir)
			if err != nil {
				return layer.Image{}, err
			}
			parts = append(parts, sum)
		}
		for _, name := range spec.Compose.Files {
			text, err := bounded.ReadFile(name, maxCompose)
			if err != nil {
				return layer.Image{}, err
			}
			sum := sha256.Sum256(text)
			parts = append(parts, hex.EncodeToString(sum[:]))
		}
	}
	name := cmp.Or(img.Ref, "a compose project")
	if img.Build != nil {
		sum, err := harbor.Checksum(img.Build.ContextDir)
		if err != nil {
			return layer.Image{}, err
		}
		parts, name = append(parts, sum), img.Build.Name
	}
	return layer.Image{ID: "build " + strings.Join(append(parts, img.Ref), " "), Name: name}, nil
}

// installation is how the program of the trial's agent is installed; nil for none.
func (b *agentBuilder) installation() (*agent.Installation, error) {
	if b.stepped() {
		return nil, nil
	}
	made, entry, err := b.resolve(false)
	if err != nil || entry.Install == nil {
		return nil, err
	}
	return entry.Install(made)
}

// installed is what was installed of a trial's agent before the trial.
type installed struct {
	store *layer.Store
	layer layer.Layer
	image layer.Image
}

// findInstalled finds it, and shows it to the sandbox of a Spec.
func (a *attempt) findInstalled(spec *sandbox.Spec) error {
	can := a.r.Backend.Capabilities()
	if a.installation == nil || a.r.Layers == nil || !can.Mounted {
		return nil
	}
	image, err := imageOf(spec, can)
	if err != nil {
		return nil //nolint:nilerr // it is installed in the sandbox then
	}
	l, found := a.r.Layers.Find(a.installation, image)
	if !found {
		return nil
	}
	a.known = &installed{store: a.r.Layers, layer: l, image: image}
	if l.Prefix != "" {
		spec.Mounts = append(spec.Mounts, sandbox.Mount{Source: l.Dir, Target: l.Prefix, ReadOnly: true})
	}
	return nil
}

// toAgent is what the agent is told.
func (i *installed) toAgent() *agent.Installed {
	if i == nil {
		return nil
	}
	return &agent.Installed{Prefix: i.layer.Prefix, Version: i.layer.Version, Trusted: i.layer.Trusted}
}

// modelAccess is how the agent's commands reach their model; nil where they find it by
// themselves.
func (a *attempt) modelAccess() *agent.ModelAccess {
	if g := a.gateway; g != nil {
		addresses := func(api llm.API) (string, string) { return gateway.Addresses(g.address, api) }
		m := &agent.ModelAccess{APIs: g.Protocols, Addresses: addresses, Key: g.Key}
		if g.Route != nil {
			m.Info = g.Route.Info
		}
		return m
	}
	return a.direct
}

// planDirect is the way of the agent's commands to their model where no gateway is between:
// they get the key. An agent that needs a model and has no way to one cannot be run.
func (a *attempt) planDirect(e agent.Entry, c agent.Config) error {
	if !e.Gateway || c.Model == "" || e.Install == nil && !e.NeedsModel || a.gateway != nil && a.gateway.required {
		return nil
	}
	c.Models = a.r.Models
	options, err := c.ModelOptions()
	if err != nil {
		return err
	}
	route, err := c.Route()
	if err != nil {
		if e.NeedsModel && !findsModel(e, c.Env) {
			return err
		}
		return nil //nolint:nilerr // it finds its model by itself
	}
	a.coverKey(route.Key)
	a.direct = &agent.ModelAccess{
		APIs: llm.Protocols(c.Model, options), Key: route.Key, Info: route.Info,
		Addresses: func(api llm.API) (string, string) { return gateway.Direct(route.Base, api) },
	}
	return nil
}

// coverKey hides the key that the agent's commands get, unless it is no more than a word.
func (a *attempt) coverKey(key string) {
	names := []string{agentName(a.cfg.Agent), *a.cfg.Agent.ModelName, a.task.Name, a.cfg.TrialName}
	isName := slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, key) })
	if len(key) >= redact.MinLength && !isName {
		a.veil.add(redact.Secret{Name: "MODEL_KEY", Value: key})
	}
}

// findsModel reports whether an agent's own variables lead it to a model.
func findsModel(e agent.Entry, vars []string) bool {
	return slices.ContainsFunc(vars, func(assignment string) bool {
		name, value, _ := strings.Cut(assignment, "=")
		return value != "" && slices.Contains(e.OwnKeys, name)
	})
}
