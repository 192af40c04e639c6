//go:build !linux

package oci

import (
	"context"
	"fmt"
	"runtime"

	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
)

// Backend makes sandboxes on Linux; on other systems it cannot be made.
type Backend struct{}

var _ sandbox.Backend = (*Backend)(nil)
var _ sandbox.Collector = (*Backend)(nil)

func unavailable() error {
	return &sandbox.UnavailableError{Err: fmt.Errorf("sandboxes without a container engine need Linux, this is %s", runtime.GOOS), Fix: "use -e docker"}
}

// New fails with sandbox.ErrUnavailable.
func New(Options) (*Backend, error) { return nil, unavailable() }

// Reexec does nothing on this system.
func Reexec([]string) (code int, handled bool) { return 0, false }

// Runtimes lists none that is available.
func Runtimes(context.Context, Options) []RuntimeStatus {
	var all []RuntimeStatus
	for _, name := range []string{RuntimeGVisor, RuntimeNative, RuntimeRunc, RuntimeCrun} {
		all = append(all, RuntimeStatus{Name: name, Reason: "needs Linux", Fix: "use -e docker"})
	}
	return all
}

// OwnNetwork fails with sandbox.ErrUnavailable.
func OwnNetwork() (fix string, err error) { return "use -e docker", unavailable() }

// Name is sandbox.BackendSandbox.
func (*Backend) Name() string { return sandbox.BackendSandbox }

// Capabilities promise nothing.
func (*Backend) Capabilities() sandbox.Capabilities { return sandbox.Capabilities{} }

// Check fails with sandbox.ErrUnavailable.
func (*Backend) Check(context.Context) error { return unavailable() }

// Create fails with sandbox.ErrUnavailable.
func (*Backend) Create(context.Context, sandbox.Spec) (sandbox.Sandbox, error) {
	return nil, unavailable()
}

// Collect finds nothing.
func (*Backend) Collect(context.Context, func(procid.ID) bool) ([]string, error) { return nil, nil }
