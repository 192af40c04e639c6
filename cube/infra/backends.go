package infra

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
)

// Host is what this machine gives to the configs that launch something on it.
type Host struct {
	// Sandbox runs the containers.
	Sandbox sandbox.Backend
	// CacheRoot is where it is noted what has been provisioned; "" is nowhere.
	CacheRoot string
}

// Attach gives a config that has been read what it needs of this machine;
// other values are left alone.
func Attach(v typed.Typed, h Host) {
	if local, ok := v.(interface{ attach(Host) }); ok {
		local.attach(h)
	}
}

// LocalContainerBackend launches containers as sandboxes of the backend that
// [Attach] gave it. One that is made in memory gets it from
// [NewLocalContainerBackend].
type LocalContainerBackend struct {
	ContainerBackendBase
	PullPolicy    string `json:"pull_policy" default:"missing"`
	NetworkMode   string `json:"network_mode" default:"bridge"`
	RemoveOnClose bool   `json:"remove_on_close" default:"true"`

	sandbox sandbox.Backend
}

// TypeName is the name of the type in documents.
func (*LocalContainerBackend) TypeName() string { return "cube.backends.local.LocalContainerBackend" }

// NewLocalContainerBackend returns a backend on top of a sandbox backend.
func NewLocalContainerBackend(b sandbox.Backend) *LocalContainerBackend {
	out := typed.Default[LocalContainerBackend]()
	out.sandbox = b
	return &out
}

func (b *LocalContainerBackend) attach(h Host) { b.sandbox = h.Sandbox }

// Launch creates a sandbox of the config's image. Limits that the sandbox
// backend cannot enforce are dropped; a GPU that it cannot give is an error, and
// so are ports, which sandboxes do not make reachable from outside.
func (b *LocalContainerBackend) Launch(ctx context.Context, cfg *ContainerConfig) (Container, error) {
	if b.sandbox == nil {
		return nil, exception.Errorf(containerLaunchErrorKind, "launching image %q: no sandbox backend is wired in", cfg.Image)
	}
	if own, ok := typed.Downcast[SandboxLauncher](cfg); ok {
		return own.LaunchSandbox(ctx, b.sandbox)
	}
	var mode sandbox.NetworkMode // public, unless sandboxes are hardened
	if b.NetworkMode == "none" {
		mode = sandbox.NetworkNone
	}
	return launchSandbox(ctx, b.sandbox, launch{
		name:    "cube",
		cfg:     cfg,
		network: mode,
		timeout: time.Duration(b.TimeoutSeconds) * time.Second,
		keep:    !b.RemoveOnClose,
	})
}

// SandboxLauncher is the optional ability of a subtype of [ContainerConfig] to
// make its sandbox itself: what it needs goes beyond an image and its size.
// [LocalContainerBackend] lets it. When LaunchSandbox returns an error, nothing
// of the container is left.
type SandboxLauncher interface {
	LaunchSandbox(ctx context.Context, b sandbox.Backend) (Container, error)
}

// launch is what is needed to turn a ContainerConfig into a sandbox.
type launch struct {
	name    string
	cfg     *ContainerConfig
	network sandbox.NetworkMode
	timeout time.Duration
	keep    bool // stop instead of destroy, where the backend can
}

func launchSandbox(ctx context.Context, backend sandbox.Backend, l launch) (Container, error) {
	if l.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.timeout)
		defer cancel()
	}
	if len(l.cfg.Ports) > 0 {
		return nil, exception.Errorf(containerLaunchErrorKind, "launching image %q: sandboxes have no way to make its ports %v reachable from outside", l.cfg.Image, l.cfg.Ports)
	}
	owner, err := procid.Self()
	if err != nil {
		return nil, exception.Errorf(containerLaunchErrorKind, "launching image %q: %w", l.cfg.Image, err)
	}
	spec := sandbox.Spec{
		Name:      l.name + "-" + uuid.NewString()[:8],
		Image:     sandbox.Image{Ref: l.cfg.Image},
		Resources: resourcesOf(l.cfg, backend.Capabilities()),
		Network:   sandbox.Network{Mode: l.network},
	}
	spec.Labels = sandbox.Labels{Job: "cube", Trial: spec.Name, Owner: owner}
	sb, err := backend.Create(ctx, spec)
	if err != nil {
		return nil, exception.Errorf(containerLaunchErrorKind, "launching image %q: %w", l.cfg.Image, err)
	}
	return &sandboxContainer{sb: sb, keep: l.keep}, nil
}

func resourcesOf(cfg *ContainerConfig, can sandbox.Capabilities) sandbox.Resources {
	var r sandbox.Resources
	if can.CPULimit {
		r.CPUs = cfg.CPUCores
	}
	if can.MemoryLimit {
		r.MemoryMB = int64(cfg.RAMGB * 1024)
	}
	if can.StorageLimit {
		r.StorageMB = int64(cfg.DiskGB * 1024)
	}
	if cfg.GPU {
		r.GPUs = 1
	}
	return r
}

// remote is a backend whose containers run at a provider that this program has
// no client for. Its config can be carried to where there is one.
type remote struct{}

func (remote) launch(provider string) (Container, error) {
	return nil, exception.Errorf(containerLaunchErrorKind, "%s containers cannot be launched from here: use LocalContainerBackend", provider)
}

// ModalContainerBackend is the config of Modal containers.
type ModalContainerBackend struct {
	ContainerBackendBase
	AppName string `json:"app_name" default:"cube-container"`
}

// NewModalContainerBackend returns a config with the reference's defaults: app cube-container.
func NewModalContainerBackend() *ModalContainerBackend {
	b := typed.Default[ModalContainerBackend]()
	return &b
}

// TypeName is the name of the type in documents.
func (*ModalContainerBackend) TypeName() string { return "cube.backends.modal.ModalContainerBackend" }

// Launch is an error: there is no client for it.
func (*ModalContainerBackend) Launch(context.Context, *ContainerConfig) (Container, error) {
	return remote{}.launch("Modal")
}

// DaytonaContainerBackend is the config of Daytona containers.
type DaytonaContainerBackend struct {
	ContainerBackendBase
	APIKey            *string `json:"api_key"`
	APIURL            *string `json:"api_url"`
	Target            *string `json:"target"`
	Ephemeral         bool    `json:"ephemeral" default:"true"`
	AutoStopMinutes   int     `json:"auto_stop_minutes" default:"10"`
	AutoDeleteMinutes int     `json:"auto_delete_minutes" default:"5"`
}

// NewDaytonaContainerBackend returns a config with the reference's defaults: ephemeral, stopped after 10
// minutes without work and deleted 5 minutes later.
func NewDaytonaContainerBackend() *DaytonaContainerBackend {
	b := typed.Default[DaytonaContainerBackend]()
	return &b
}

// TypeName is the name of the type in documents.
func (*DaytonaContainerBackend) TypeName() string {
	return "cube.backends.daytona.DaytonaContainerBackend"
}

// Launch is an error: there is no client for it.
func (*DaytonaContainerBackend) Launch(context.Context, *ContainerConfig) (Container, error) {
	return remote{}.launch("Daytona")
}

// ToolkitContainerBackend is the config of Toolkit containers.
type ToolkitContainerBackend struct {
	ContainerBackendBase
	Profile     *string `json:"profile"`
	Account     *string `json:"account"`
	Interactive bool    `json:"interactive" default:"false"`
	Preemptable bool    `json:"preemptable" default:"false"`
	ExecMode    string  `json:"exec_mode" default:"sidecar" enum:"sidecar,direct"`
}

// NewToolkitContainerBackend returns a config with the reference's defaults: a sidecar of the job.
func NewToolkitContainerBackend() *ToolkitContainerBackend {
	b := typed.Default[ToolkitContainerBackend]()
	return &b
}

// TypeName is the name of the type in documents.
func (*ToolkitContainerBackend) TypeName() string {
	return "cube.backends.toolkit.ToolkitContainerBackend"
}

// Launch is an error: there is no client for it.
func (*ToolkitContainerBackend) Launch(context.Context, *ContainerConfig) (Container, error) {
	return remote{}.launch("Toolkit")
}
