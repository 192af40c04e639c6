package compose

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/proctor-run/proctor/internal/enginesocket"
	"github.com/proctor-run/proctor/sandbox"
)

// risks says where a project reaches out of its containers. Its files are the
// task author's and get the whole engine, as they do from docker compose; a
// person should know when they make use of it.
// known are the sockets of engines on this machine.
func risks(p *types.Project, ours []sandbox.Mount, known []string) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(p.Services)) {
		s := p.Services[name]
		for _, what := range slices.Concat(serviceRisks(&s), mountRisks(p, &s, ours, known)) {
			found = append(found, fmt.Sprintf("compose service %s %s", name, what))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.Networks)) {
		if n := p.Networks[key]; n.External {
			found = append(found, fmt.Sprintf("the compose project joins network %s, which is not its own", n.Name))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.Volumes)) {
		if v := p.Volumes[key]; v.External {
			found = append(found, fmt.Sprintf("the compose project uses volume %s, which is not its own", v.Name))
		}
	}
	return found
}

func serviceRisks(s *types.ServiceConfig) []string {
	var found []string
	if s.Privileged {
		found = append(found, "is privileged: it can take over this machine")
	}
	for what, mode := range map[string]string{
		"network": s.NetworkMode, "processes": s.Pid, "IPC": s.Ipc, "host name": s.Uts, "user namespace": s.UserNSMode, "cgroups": s.Cgroup,
	} {
		if mode == "host" {
			found = append(found, fmt.Sprintf("shares the host's %s", what))
		}
		if other, ok := strings.CutPrefix(mode, types.ContainerPrefix); ok {
			found = append(found, fmt.Sprintf("shares the %s of container %s, which is not the project's", what, other))
		}
	}
	slices.Sort(found)
	if len(s.CapAdd) > 0 {
		found = append(found, "has added capabilities: "+strings.Join(s.CapAdd, " "))
	}
	if len(s.SecurityOpt) > 0 {
		found = append(found, "has changed security options: "+strings.Join(s.SecurityOpt, " "))
	}
	for _, d := range s.Devices {
		found = append(found, "uses the host's device "+d.Source)
	}
	if len(s.DeviceCgroupRules) > 0 {
		found = append(found, "may use further devices: "+strings.Join(s.DeviceCgroupRules, ", "))
	}
	for _, p := range s.Ports {
		if p.Published != "" {
			found = append(found, fmt.Sprintf("is reachable at this machine's port %s", p.Published))
		}
	}
	return found
}

// engineSockets are the names that sockets of container engines have.
var engineSockets = []string{"docker.sock", "podman.sock", "containerd.sock", "crio.sock"}

func mountRisks(p *types.Project, s *types.ServiceConfig, ours []sandbox.Mount, known []string) []string {
	var found []string
	for _, v := range s.Volumes {
		if v.Type != types.VolumeTypeBind || slices.ContainsFunc(ours, func(m sandbox.Mount) bool {
			return s.Name == mainService && m.Source == v.Source && m.Target == v.Target
		}) {
			continue
		}
		how := "mounts"
		if !v.ReadOnly {
			how = "mounts, writable,"
		}
		shown := enginesocket.Shown(v.Source, "", known)
		switch {
		case slices.Contains(engineSockets, filepath.Base(v.Source)):
			found = append(found, fmt.Sprintf("mounts a container engine's socket, %s: it can take over this machine", v.Source))
		case shown != "":
			found = append(found, fmt.Sprintf("mounts %s, and with it a container engine's socket, %s: it can take over this machine", v.Source, shown))
		case !within(p.WorkingDir, v.Source):
			found = append(found, fmt.Sprintf("%s %s of this machine at %s", how, v.Source, v.Target))
		}
	}
	return found
}

// within reports whether a path lies in a directory, also when its links are
// followed.
func within(dir, path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path
	}
	if realDir, err := filepath.EvalSymlinks(dir); err == nil {
		dir = realDir
	}
	rel, err := filepath.Rel(dir, real)
	return err == nil && filepath.IsLocal(rel)
}
