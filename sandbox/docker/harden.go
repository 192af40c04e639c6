package docker

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/compose"
	"github.com/proctor-run/proctor/sandbox/internal/hardening"
)

// hardenable refuses hardened sandboxes that this engine, or a container in
// general, cannot be.
func (b *Backend) hardenable(spec sandbox.Spec) error {
	var why string
	switch {
	case !spec.Hardened:
		return nil
	case b.guest == nil:
		why = errNoGuest.Error()
	case !b.local:
		why = "the engine does not see this machine's files, so that the supervisor cannot be put below a read-only root"
	default:
		return nil
	}
	return fmt.Errorf("hardening the sandbox: %s: %w", why, sandbox.ErrUnsupported)
}

// harden makes a container one with a read-only root and nothing but what the
// supervisor needs, which gives commands none of it.
func harden(o *client.ContainerCreateOptions, spec sandbox.Spec, img compose.Image) {
	host := o.HostConfig
	host.ReadonlyRootfs = true
	host.CapDrop = []string{"ALL"}
	host.CapAdd = append(hardening.Supervisor(), hardening.Taker)
	host.SecurityOpt = append(host.SecurityOpt, "no-new-privileges")
	host.Tmpfs = maps.Clone(host.Tmpfs)
	if host.Tmpfs == nil {
		host.Tmpfs = map[string]string{}
	}
	host.Tmpfs[hardening.Tmp] = "rw,nosuid,nodev,exec,mode=" + hardening.TmpMode
	var asked int64
	if host.PidsLimit != nil {
		asked = *host.PidsLimit
	}
	host.PidsLimit = new(hardening.PIDs(asked))
	// The engine would run it beside the supervisor, with the same capabilities.
	o.Config.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}}
	for _, dir := range writable(o, cmp.Or(spec.Workdir, o.Config.WorkingDir, img.Workdir, "/")) {
		// An anonymous one begins as the image has it, and goes with the container.
		host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeVolume, Target: dir})
	}
}

// writable lists the directories that get a volume of their own: what is mounted
// there already does not.
func writable(o *client.ContainerCreateOptions, workdir string) []string {
	var taken []string
	for _, m := range o.HostConfig.Mounts {
		taken = append(taken, m.Target)
	}
	for _, bind := range o.HostConfig.Binds {
		if parts := strings.Split(bind, ":"); len(parts) > 1 {
			taken = append(taken, parts[1])
		}
	}
	for dir := range o.HostConfig.Tmpfs {
		taken = append(taken, dir)
	}
	return hardening.Writable(workdir, taken)
}

// hardenMain hardens the service main of a compose project, for a way of starting
// its supervisor.
func (m *mainService) hardenMain(o *client.ContainerCreateOptions, img compose.Image) error {
	if m.way != byMount {
		return fmt.Errorf("%w: %w", errNotHardened, sandbox.ErrUnsupported)
	}
	if h := o.Config.Healthcheck; h != nil && !slices.Equal(h.Test, []string{"NONE"}) {
		return fmt.Errorf("hardening compose service main: the engine would run its health check with capabilities: %w", sandbox.ErrUnsupported)
	}
	harden(o, m.spec, img)
	return nil
}

// errNotHardened is why a hardened container cannot do without its supervisor.
var errNotHardened = errors.New("a hardened container needs its supervisor, mounted from this machine")
