package infra

import (
	"strings"

	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/value"
)

// What a resource needs from an infra (CUBE, section 7).
const (
	needsKVM    = "kvm"
	NeedsDocker = "docker"
	needsGPU    = "gpu:nvidia"
)

// ResourceConfig is something a benchmark or a task needs from outside:
// embedded by all kinds of resources.
type ResourceConfig struct {
	link
	Name                 string  `json:"name"`
	Scope                string  `json:"scope" default:"task" enum:"task,benchmark"`
	MaxConcurrentAgents  *int    `json:"max_concurrent_agents"`
	SourceURL            *string `json:"source_url"`
	SourceHash           *string `json:"source_hash"`
	DefaultTTLSeconds    *int    `json:"default_ttl_seconds" default:"3600"`
	BootstrapScriptExtra *string `json:"bootstrap_script_extra"`
}

// TypeName is the name of the type in documents.
func (*ResourceConfig) TypeName() string { return "cube.resource.ResourceConfig" }

// Base returns r.
func (r *ResourceConfig) Base() *ResourceConfig { return r }

// Requirements returns nothing: a plain resource needs no ability.
func (*ResourceConfig) Requirements() []string { return nil }

// Resource is a *ResourceConfig or a pointer to a struct that embeds one.
type Resource interface {
	typed.Typed
	Base() *ResourceConfig
	// Requirements lists the abilities that an infra must have to serve it.
	Requirements() []string
}

// VMResourceConfig is a virtual machine.
type VMResourceConfig struct {
	ResourceConfig
	RequiresKVM    bool   `json:"requires_kvm" default:"true"`
	OSDiskGB       *int   `json:"os_disk_gb"`
	MinCPUCores    *int   `json:"min_cpu_cores"`
	MinRAMGB       *int   `json:"min_ram_gb"`
	UEFI           bool   `json:"uefi" default:"false"`
	TPM            bool   `json:"tpm" default:"false"`
	OSType         string `json:"os_type" default:"linux" enum:"linux,windows"`
	Specialized    bool   `json:"specialized" default:"false"`
	ForwardedPorts []int  `json:"forwarded_ports" default:"[]"`
}

// TypeName is the name of the type in documents.
func (*VMResourceConfig) TypeName() string { return "cube.resource.VMResourceConfig" }

// NewVMResourceConfig returns a machine of that name with the reference's
// defaults: Linux, with KVM, for an hour.
func NewVMResourceConfig(name string) *VMResourceConfig {
	c := typed.Default[VMResourceConfig]()
	c.Name = name
	return &c
}

// Requirements returns kvm, if the machine needs it.
func (c *VMResourceConfig) Requirements() []string {
	if c.RequiresKVM {
		return []string{needsKVM}
	}
	return nil
}

// VolumeSpec is data that a service mounts.
type VolumeSpec struct {
	link
	Name            string  `json:"name"`
	MountPath       string  `json:"mount_path"`
	SourceURL       *string `json:"source_url"`
	TarSubpath      *string `json:"tar_subpath"`
	StripComponents int     `json:"strip_components" default:"0"`
}

// TypeName is the name of the type in documents.
func (*VolumeSpec) TypeName() string { return "cube.resource.VolumeSpec" }

// DockerServiceConfig is one or more containers that a script starts.
type DockerServiceConfig struct {
	ResourceConfig
	DockerImages   []string          `json:"docker_images" default:"[]"`
	Services       typed.Map[int]    `json:"services" default:"{}"`
	LaunchScript   string            `json:"launch_script" default:""`
	EndpointToSite typed.Map[string] `json:"endpoint_to_site" default:"{}"`
	Volumes        []*VolumeSpec     `json:"volumes" default:"[]"`

	// container is what the script was made from, for an infra that needs no
	// script. It does not cross process boundaries.
	container *ContainerConfig
}

// TypeName is the name of the type in documents.
func (*DockerServiceConfig) TypeName() string { return "cube.resource.DockerServiceConfig" }

// NewDockerServiceConfig returns a service of that name which the script starts,
// with the reference's defaults: for an hour.
func NewDockerServiceConfig(name, script string) *DockerServiceConfig {
	c := typed.Default[DockerServiceConfig]()
	c.Name, c.LaunchScript = name, script
	return &c
}

// Requirements returns docker.
func (*DockerServiceConfig) Requirements() []string { return []string{NeedsDocker} }

// DockerImageConfig is a container image.
type DockerImageConfig struct {
	ResourceConfig
	Image    string  `json:"image"`
	RAMGB    float64 `json:"ram_gb" default:"4.0"`
	CPUCores float64 `json:"cpu_cores" default:"2.0"`
	DiskGB   float64 `json:"disk_gb" default:"10.0"`
	GPU      bool    `json:"gpu" default:"false"`
	Ports    []int   `json:"ports" cube:"nullable"`
}

// TypeName is the name of the type in documents.
func (*DockerImageConfig) TypeName() string { return "cube.resource.DockerImageConfig" }

// NewDockerImageConfig returns a resource of that name which is the image, with the
// reference's defaults: 2 cores, 4 GB of memory, 10 GB of disk, for an hour.
func NewDockerImageConfig(name, image string) *DockerImageConfig {
	c := typed.Default[DockerImageConfig]()
	c.Name, c.Image = name, image
	return &c
}

// Requirements returns docker, and gpu:nvidia if a GPU is wanted.
func (c *DockerImageConfig) Requirements() []string {
	if c.GPU {
		return []string{NeedsDocker, needsGPU}
	}
	return []string{NeedsDocker}
}

// dockerRunScript is the shell script that starts one container and leaves it
// waiting. The label lets the infra that runs the script find the container.
func dockerRunScript(name string, cfg *ContainerConfig) string {
	var b strings.Builder
	b.WriteString("docker run -d --name " + ShellQuote(name))
	b.WriteString(` --label "cube.launch=${CUBE_LAUNCH_ID:-unlabeled}"`)
	b.WriteString(" --memory=" + value.Repr(value.NewInt(int64(cfg.RAMGB*1024))) + "m")
	b.WriteString(" --cpus=" + value.FloatRepr(cfg.CPUCores))
	b.WriteString(" " + ShellQuote(cfg.Image) + " sleep infinity")
	return b.String()
}
