package infra

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/value"
)

// link makes subtypes of the data types of this package readable in their slots.
type link = typed.Link

// Package typed finds the links by their method.
var _ = [...]link{ContainerConfig{}.link, ResourceConfig{}.link, VolumeSpec{}.link}

// ContainerConfig says what container a task needs (CUBE, section 5). Make one
// with [NewContainerConfig]: a literal has no memory.
type ContainerConfig struct {
	link
	Image    string  `json:"image"`
	RAMGB    float64 `json:"ram_gb" default:"4.0"`
	CPUCores float64 `json:"cpu_cores" default:"2.0"`
	GPU      bool    `json:"gpu" default:"false"`
	DiskGB   float64 `json:"disk_gb" default:"10.0"` // no limit with Docker
	Ports    []int   `json:"ports" cube:"nullable"`  // to be reachable from outside
}

// TypeName is the name of the type in documents.
func (*ContainerConfig) TypeName() string { return "cube.container.ContainerConfig" }

// NewContainerConfig returns a config of the image with the default resources:
// 2 cores, 4 GB of memory, 10 GB of disk.
func NewContainerConfig(image string) *ContainerConfig {
	c := typed.Default[ContainerConfig]()
	c.Image = image
	return &c
}

// ContainerBackend launches containers.
type ContainerBackend interface {
	typed.Typed
	// Launch starts a container and returns when it is ready. When it returns
	// an error, nothing of the container is left.
	Launch(ctx context.Context, cfg *ContainerConfig) (Container, error)
}

// ContainerBackendBase has the fields of every backend; embed it.
type ContainerBackendBase struct {
	TimeoutSeconds int           `json:"timeout_seconds" default:"1800"` // for Launch
	BackendConfig  *value.Object `json:"backend_config" default:"{}"`
}

// Container is a running container. It lives in one process and is never
// written anywhere.
type Container interface {
	ID() string
	// Exec runs a shell command. An exit code other than 0 is a result.
	Exec(ctx context.Context, req ExecRequest) (ExecResult, error)
	// Stop ends and removes the container. It may be called repeatedly.
	Stop(ctx context.Context) error
}

// portForwarder is the ability of a container to make its ports reachable.
type portForwarder interface {
	// ForwardPort returns the port on this host that leads to a port of the
	// container.
	ForwardPort(ctx context.Context, port int) (int, error)
}

// ExecRequest is a command for a container's shell.
type ExecRequest struct {
	Command string
	Timeout time.Duration // 0: none
	Workdir string        // "": the container's
	Env     typed.Map[string]
}

// ExecResult is how a command ended.
type ExecResult struct {
	Stdout, Stderr  string
	ExitCode        int // 124 when the timeout passed
	DurationSeconds float64
}

// TimedOutCode is the exit code of a command whose timeout passed.
const TimedOutCode = 124

// The classes of container errors. All derive from "ContainerError".
const (
	ContainerErrorKind       = "ContainerError"
	containerLaunchErrorKind = "ContainerLaunchError"
	HealthCheckErrorKind     = "HealthCheckError"
	ContainerExecErrorKind   = "ContainerExecError"
)

// ForwardPort returns the port on this host that leads to a port of the
// container, or a ContainerError.
func ForwardPort(ctx context.Context, c Container, port int) (int, error) {
	f, ok := c.(portForwarder)
	if !ok {
		return 0, notExposed(port)
	}
	return f.ForwardPort(ctx, port)
}

func notExposed(port int) error {
	return exception.Errorf(ContainerErrorKind, "Port %d is not exposed. Available ports: []", port)
}

// PortFromURL returns the port that a URL leads to.
func PortFromURL(raw string) (int, error) {
	u, err := url.Parse(raw)
	if err == nil {
		if p, err := strconv.Atoi(u.Port()); err == nil {
			return p, nil
		}
		switch u.Scheme {
		case "https":
			return 443, nil
		case "http":
			return 80, nil
		}
	}
	return 0, exception.Errorf(ContainerErrorKind, "Could not determine port from URL: %s", raw)
}
