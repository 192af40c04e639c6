package docker

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/compose"
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

// hardenedSpec completes what a hardened Spec says.
func (b *Backend) hardenedSpec(spec sandbox.Spec) sandbox.Spec {
	spec.Hardened = spec.Hardened || b.hardened
	if !spec.Hardened {
		return spec
	}
	spec.Resources.PIDs = cmp.Or(spec.Resources.PIDs, b.pids)
	if spec.Resources.PIDs <= 0 || spec.Resources.PIDs > sandbox.HardenedPIDs {
		spec.Resources.PIDs = sandbox.HardenedPIDs
	}
	spec.Network.Mode = cmp.Or(spec.Network.Mode, sandbox.NetworkNone)
	return spec
}

// harden makes a container one with a read-only root and nothing but what the
// supervisor needs, which gives commands none of it.
func harden(o *client.ContainerCreateOptions, spec sandbox.Spec, img compose.Image) {
	host := o.HostConfig
	host.ReadonlyRootfs = true
	host.CapDrop = []string{"ALL"}
	host.CapAdd = append(slices.Clone(needed), "SETPCAP") // to take them from commands
	host.SecurityOpt = append(host.SecurityOpt, "no-new-privileges")
	host.Tmpfs = maps.Clone(host.Tmpfs)
	if host.Tmpfs == nil {
		host.Tmpfs = map[string]string{}
	}
	host.Tmpfs["/tmp"] = "rw,nosuid,nodev,exec,mode=1777"
	if host.PidsLimit == nil || *host.PidsLimit <= 0 || *host.PidsLimit > sandbox.HardenedPIDs {
		host.PidsLimit = new(int64(sandbox.HardenedPIDs))
	}
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
	dirs := sandbox.HardenedWritable()
	workdir = path.Clean(workdir)
	below := func(parent string) bool { return workdir == parent || strings.HasPrefix(workdir, parent+"/") }
	if path.IsAbs(workdir) && workdir != "/" && !below("/tmp") && !slices.ContainsFunc(dirs, below) {
		dirs = append(dirs, workdir)
	}
	taken := map[string]bool{}
	for _, m := range o.HostConfig.Mounts {
		taken[path.Clean(m.Target)] = true
	}
	for _, bind := range o.HostConfig.Binds {
		if parts := strings.Split(bind, ":"); len(parts) > 1 {
			taken[path.Clean(parts[1])] = true
		}
	}
	for dir := range o.HostConfig.Tmpfs {
		taken[path.Clean(dir)] = true
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return taken[dir] })
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
