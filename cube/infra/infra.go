package infra

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

// ProvisionStatus says whether a resource can be launched.
type ProvisionStatus string

// The provision statuses.
const (
	Ready             ProvisionStatus = "ready"
	NeedsProvisioning ProvisionStatus = "needs_provisioning"
)

// Infra is where resources are provisioned and launched (CUBE, section 7). A
// task whose runtime context has one under "infra" gets its container there.
type Infra interface {
	typed.Typed
	// Fingerprint names the place, so that what is provisioned at one is not
	// taken for provisioned at another.
	Fingerprint() string
	// Capabilities lists the abilities, in the words of [Resource].
	Capabilities() []string
	ProvisionStatus(ctx context.Context, r Resource) (ProvisionStatus, error)
	// Provision makes a resource ready. It may be called repeatedly.
	Provision(ctx context.Context, r Resource) error
	// Launch starts a resource that is ready.
	Launch(ctx context.Context, r Resource) (Handle, error)
}

// Handle is a launched resource.
type Handle interface {
	// Container returns the one container of the resource.
	Container() (Container, error)
	// Close ends the resource. It may be called repeatedly.
	Close(ctx context.Context) error
}

// InfraConfigBase has the fields of every infra; embed it.
type InfraConfigBase struct {
	DefaultTTLSeconds *int   `json:"default_ttl_seconds" default:"86400"`
	ImageNameSuffix   string `json:"image_name_suffix" default:""`
}

// CanServe reports whether an infra has all that a resource requires.
func CanServe(i Infra, r Resource) bool {
	have := i.Capabilities()
	return !slices.ContainsFunc(r.Requirements(), func(need string) bool { return !slices.Contains(have, need) })
}

// ResourceNotReady is the error for launching what was never provisioned.
func ResourceNotReady(name, fingerprint string) error {
	return &exception.Error{Type: "ResourceNotReadyError", Message: "'" + name + "' is not registered for '" + fingerprint + "'.\n" +
		"  Run: infra.register(resource, {...})        # manual\n" +
		"  Or:  infra.provision(resource)               # automated, if supported"}
}

const unsupportedResourceType = "UnsupportedResourceType"

// UnsupportedResource is the error for a resource that an infra cannot serve.
func UnsupportedResource(i Infra, r Resource) error {
	return &exception.Error{Type: unsupportedResourceType, Message: typed.ClassName(i) + " does not support " + typed.ClassName(r) +
		" ('" + r.Base().Name + "'). Check infra.capabilities() vs resource.requirements()."}
}

// ContainerResource is the resource that stands for a task's container.
func ContainerResource(id string, cfg *ContainerConfig) *DockerServiceConfig {
	r := NewDockerServiceConfig(id, dockerRunScript(id+"-"+uuid.NewString()[:8], cfg))
	r.Scope = "task"
	r.DockerImages = []string{cfg.Image}
	r.container = cfg
	return r
}

// LocalInfraConfig is this machine. It launches single containers, as sandboxes
// of the backend that [Attach] gave it, and no virtual machines.
type LocalInfraConfig struct {
	InfraConfigBase
	CPUCores     int    `json:"cpu_cores" default:"4"`
	RAMGB        int    `json:"ram_gb" default:"4"`
	ScreenWidth  int    `json:"screen_width" default:"1920"`
	ScreenHeight int    `json:"screen_height" default:"1080"`
	Headless     bool   `json:"headless" default:"true"`
	EnableKVM    bool   `json:"enable_kvm" default:"true"`
	ImageDir     string `json:"image_dir" default:""` // empty: "images" in the cache root

	sandbox sandbox.Backend
	store   *provisionStore
}

// TypeName is the name of the type in documents.
func (*LocalInfraConfig) TypeName() string { return "cube.infra_local.LocalInfraConfig" }

// NewLocal returns this machine.
func NewLocal(h Host) *LocalInfraConfig {
	out := typed.Default[LocalInfraConfig]()
	out.attach(h)
	return &out
}

func (c *LocalInfraConfig) attach(h Host) {
	c.sandbox = h.Sandbox
	if h.CacheRoot == "" {
		return
	}
	c.store = newProvisionStore(filepath.Join(h.CacheRoot, "provisions"))
	if c.ImageDir == "" {
		c.ImageDir = filepath.Join(h.CacheRoot, "images")
	}
}

// Fingerprint returns "local".
func (*LocalInfraConfig) Fingerprint() string { return "local" }

// Capabilities returns docker, if there is a sandbox backend.
func (c *LocalInfraConfig) Capabilities() []string {
	if c.sandbox == nil {
		return nil
	}
	if c.sandbox.Capabilities().GPUs {
		return []string{NeedsDocker, needsGPU}
	}
	return []string{NeedsDocker}
}

// ProvisionStatus looks the resource up among what is provisioned.
func (c *LocalInfraConfig) ProvisionStatus(_ context.Context, r Resource) (ProvisionStatus, error) {
	if c.store == nil || c.store.has(c.key(r.Base().Name+c.ImageNameSuffix)) {
		return Ready, nil
	}
	return NeedsProvisioning, nil
}

func (c *LocalInfraConfig) key(name string) string { return name + "@" + c.Fingerprint() }

// Provision notes that the resource may be launched: images are fetched when
// they are first needed. What Launch could not start is refused here already.
func (c *LocalInfraConfig) Provision(_ context.Context, r Resource) error {
	if _, err := c.containerOf(r); err != nil {
		return err
	}
	if c.store == nil {
		return nil
	}
	return c.store.put(c.key(r.Base().Name+c.ImageNameSuffix), typed.Pairs("provisioned_by", "proctor"))
}

// Register notes that a resource has been provisioned by hand, under its own
// name: the suffix for image names is the caller's business here.
func (c *LocalInfraConfig) Register(r Resource, info *value.Object) error {
	if c.store == nil {
		return nil
	}
	return c.store.put(c.key(r.Base().Name), info)
}

// Launch starts the container of a task.
func (c *LocalInfraConfig) Launch(ctx context.Context, r Resource) (Handle, error) {
	if !CanServe(c, r) {
		return nil, UnsupportedResource(c, r)
	}
	status, err := c.ProvisionStatus(ctx, r)
	if err != nil {
		return nil, err
	}
	if status != Ready {
		return nil, ResourceNotReady(r.Base().Name, c.Fingerprint())
	}
	cfg, err := c.containerOf(r)
	if err != nil {
		return nil, err
	}
	container, err := launchSandbox(ctx, c.sandbox, launch{name: "cube-task", cfg: cfg})
	if err != nil {
		return nil, err
	}
	return containerHandle{container}, nil
}

// containerOf returns the config of the one container that a resource comes to,
// or why it cannot be launched here.
func (c *LocalInfraConfig) containerOf(r Resource) (*ContainerConfig, error) {
	if !CanServe(c, r) {
		return nil, UnsupportedResource(c, r)
	}
	service, ok := r.(*DockerServiceConfig)
	switch {
	case !ok:
		return nil, exception.Errorf(unsupportedResourceType, "%s launches the containers of tasks, and no %s ('%s')",
			typed.ClassName(c), typed.ClassName(r), r.Base().Name)
	case len(service.DockerImages) != 1:
		return nil, exception.Errorf(exception.RuntimeError, "LocalDockerServiceHandle.container is only defined for single-container resources (got %d containers).", len(service.DockerImages))
	case service.container == nil:
		return nil, exception.Errorf(unsupportedResourceType, "%s runs no launch scripts: it launches the containers of tasks, and '%s' is not one",
			typed.ClassName(c), r.Base().Name)
	}
	return service.container, nil
}

// containerHandle is a launched container.
type containerHandle struct{ c Container }

func (h containerHandle) Container() (Container, error)   { return h.c, nil }
func (h containerHandle) Close(ctx context.Context) error { return h.c.Stop(ctx) }

var _ Infra = (*LocalInfraConfig)(nil)
