package compose

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/moby/api/types/blkiodev"
	"github.com/moby/moby/api/types/container"
)

// hostConfig translates what of a service concerns the machine.
func (p *project) hostConfig(s *types.ServiceConfig) (*container.HostConfig, error) {
	host := &container.HostConfig{
		CapAdd:         s.CapAdd,
		CapDrop:        s.CapDrop,
		CgroupnsMode:   container.CgroupnsMode(s.Cgroup),
		DNSOptions:     s.DNSOpts,
		DNSSearch:      s.DNSSearch,
		ExtraHosts:     s.ExtraHosts.AsList(":"),
		GroupAdd:       s.GroupAdd,
		Init:           s.Init,
		OomScoreAdj:    int(s.OomScoreAdj),
		Privileged:     s.Privileged,
		ReadonlyRootfs: s.ReadOnly,
		Runtime:        s.Runtime,
		SecurityOpt:    securityOptions(s.SecurityOpt),
		ShmSize:        int64(s.ShmSize),
		StorageOpt:     s.StorageOpt,
		Sysctls:        s.Sysctls,
		UsernsMode:     container.UsernsMode(s.UserNSMode),
		UTSMode:        container.UTSMode(s.Uts),
		Resources:      p.resources(s),
	}
	slices.Sort(host.ExtraHosts)
	for _, text := range s.DNS {
		addr, err := address(text)
		if err != nil {
			return nil, fmt.Errorf("service %q: dns: %w", s.Name, err)
		}
		host.DNS = append(host.DNS, addr)
	}
	if s.Logging != nil {
		host.LogConfig = container.LogConfig{Type: s.Logging.Driver, Config: s.Logging.Options}
	}
	var err error
	if host.RestartPolicy, err = restartPolicy(s); err != nil {
		return nil, fmt.Errorf("service %q: restart: %w", s.Name, err)
	}
	if err := p.namespaces(s, host); err != nil {
		return nil, fmt.Errorf("service %q: %w", s.Name, err)
	}
	if err := p.mounts(s, host); err != nil {
		return nil, fmt.Errorf("service %q: %w", s.Name, err)
	}
	return host, nil
}

// namespaces sets what a service shares with the machine or another container.
func (p *project) namespaces(s *types.ServiceConfig, host *container.HostConfig) error {
	shared := func(key, mode string) (string, error) {
		name, ok := strings.CutPrefix(mode, types.ServicePrefix)
		if !ok {
			return mode, nil
		}
		ids := p.containers[name]
		if len(ids) == 0 {
			return "", fmt.Errorf("%s: service %q has no container", key, name)
		}
		return types.ContainerPrefix + ids[0], nil
	}
	net, err := shared("network_mode", s.NetworkMode)
	if err != nil {
		return err
	}
	pid, err := shared("pid", s.Pid)
	if err != nil {
		return err
	}
	ipc, err := shared("ipc", s.Ipc)
	if err != nil {
		return err
	}
	host.NetworkMode, host.PidMode, host.IpcMode = container.NetworkMode(net), container.PidMode(pid), container.IpcMode(ipc)
	if s.NetworkMode == "" {
		host.NetworkMode = "none"
		if keys := s.NetworksByPriority(); len(keys) > 0 {
			host.NetworkMode = container.NetworkMode(p.model.Networks[keys[0]].Name)
		}
	}
	for _, from := range s.VolumesFrom {
		if rest, ok := strings.CutPrefix(from, types.ContainerPrefix); ok {
			host.VolumesFrom = append(host.VolumesFrom, rest)
			continue
		}
		name, mode, hasMode := strings.Cut(from, ":")
		ids := p.containers[name]
		if len(ids) == 0 {
			return fmt.Errorf("volumes_from: service %q has no container", name)
		}
		from = ids[0]
		if hasMode {
			from += ":" + mode
		}
		host.VolumesFrom = append(host.VolumesFrom, from)
	}
	return nil
}

// securityOptions takes the older spelling with a colon, as compose does.
func securityOptions(list []string) []string {
	out := slices.Clone(list)
	for i, o := range out {
		if name, value, ok := strings.Cut(o, ":"); ok && !strings.Contains(name, "=") {
			out[i] = name + "=" + value
		}
	}
	return out
}

// resources are what a service may use. One whose file does not bound its processes
// has the bound of the sandbox.
func (p *project) resources(s *types.ServiceConfig) container.Resources {
	r := container.Resources{
		CgroupParent:       s.CgroupParent,
		Memory:             int64(s.MemLimit),
		MemorySwap:         int64(s.MemSwapLimit),
		MemoryReservation:  int64(s.MemReservation),
		CPUPeriod:          s.CPUPeriod,
		CPUQuota:           s.CPUQuota,
		CPURealtimePeriod:  s.CPURTPeriod,
		CPURealtimeRuntime: s.CPURTRuntime,
		CPUShares:          s.CPUShares,
		NanoCPUs:           nano(s.CPUS),
		CpusetCpus:         s.CPUSet,
		DeviceCgroupRules:  s.DeviceCgroupRules,
		DeviceRequests:     deviceRequests(s.Gpus),
	}
	if s.MemSwappiness != 0 {
		r.MemorySwappiness = new(int64(s.MemSwappiness))
	}
	if s.OomKillDisable {
		r.OomKillDisable = new(true)
	}
	if s.PidsLimit != 0 {
		r.PidsLimit = new(s.PidsLimit)
	}
	for _, d := range s.Devices {
		r.Devices = append(r.Devices, container.DeviceMapping{
			PathOnHost: d.Source, PathInContainer: d.Target, CgroupPermissions: d.Permissions,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Ulimits)) {
		u := s.Ulimits[name]
		soft, hard := u.Soft, u.Hard
		if u.Single != 0 {
			soft, hard = u.Single, u.Single
		}
		r.Ulimits = append(r.Ulimits, &container.Ulimit{Name: name, Soft: int64(soft), Hard: int64(hard)})
	}
	blockIO(&r, s.BlkioConfig)
	if s.Deploy != nil {
		deployed(&r, s.Deploy.Resources)
	}
	if limit := p.spec.Resources.PIDs; r.PidsLimit == nil && limit > 0 {
		r.PidsLimit = new(limit)
	}
	return r
}

// deployed applies the limits under deploy, which win.
func deployed(r *container.Resources, d types.Resources) {
	if l := d.Limits; l != nil {
		if l.NanoCPUs != 0 {
			r.NanoCPUs = nano(float32(l.NanoCPUs))
		}
		if l.MemoryBytes != 0 {
			r.Memory = int64(l.MemoryBytes)
		}
		if l.Pids != 0 {
			r.PidsLimit = new(l.Pids)
		}
	}
	if w := d.Reservations; w != nil {
		if w.MemoryBytes != 0 {
			r.MemoryReservation = int64(w.MemoryBytes)
		}
		r.DeviceRequests = append(r.DeviceRequests, deviceRequests(w.Devices)...)
	}
}

// nano turns a number of processors into billionths. The number was read into
// 32 bits: what was written is its shortest decimal form.
func nano(cpus float32) int64 {
	v, _ := strconv.ParseFloat(strconv.FormatFloat(float64(cpus), 'g', -1, 32), 64)
	return int64(math.Round(v * 1e9))
}

func deviceRequests(list []types.DeviceRequest) []container.DeviceRequest {
	var out []container.DeviceRequest
	for _, d := range list {
		request := container.DeviceRequest{
			Driver: d.Driver, Count: int(d.Count), DeviceIDs: d.IDs, Options: d.Options,
		}
		if len(d.Capabilities) > 0 {
			request.Capabilities = [][]string{d.Capabilities}
		}
		out = append(out, request)
	}
	return out
}

func blockIO(r *container.Resources, b *types.BlkioConfig) {
	if b == nil {
		return
	}
	r.BlkioWeight = b.Weight
	for _, d := range b.WeightDevice {
		r.BlkioWeightDevice = append(r.BlkioWeightDevice, &blkiodev.WeightDevice{Path: d.Path, Weight: d.Weight})
	}
	throttled := func(list []types.ThrottleDevice) []*blkiodev.ThrottleDevice {
		var out []*blkiodev.ThrottleDevice
		for _, d := range list {
			out = append(out, &blkiodev.ThrottleDevice{Path: d.Path, Rate: uint64(max(d.Rate, 0))})
		}
		return out
	}
	r.BlkioDeviceReadBps, r.BlkioDeviceWriteBps = throttled(b.DeviceReadBps), throttled(b.DeviceWriteBps)
	r.BlkioDeviceReadIOps, r.BlkioDeviceWriteIOps = throttled(b.DeviceReadIOps), throttled(b.DeviceWriteIOps)
}

// restartPolicy reads restart, or deploy.restart_policy where that is absent.
func restartPolicy(s *types.ServiceConfig) (container.RestartPolicy, error) {
	var policy container.RestartPolicy
	switch {
	case s.Restart != "":
		name, count, hasCount := strings.Cut(s.Restart, ":")
		policy.Name = container.RestartPolicyMode(name)
		if hasCount {
			n, err := strconv.Atoi(count)
			if err != nil {
				return policy, fmt.Errorf("%q: want a number of tries", s.Restart)
			}
			policy.MaximumRetryCount = n
		}
	case s.Deploy != nil && s.Deploy.RestartPolicy != nil:
		switch d := s.Deploy.RestartPolicy; d.Condition {
		case "", "any":
			policy.Name = container.RestartPolicyAlways
		case "none":
			policy.Name = container.RestartPolicyDisabled
		default:
			policy.Name = container.RestartPolicyMode(d.Condition)
			if d.MaxAttempts != nil {
				policy.MaximumRetryCount = int(min(*d.MaxAttempts, math.MaxInt32))
			}
		}
	}
	return policy, nil
}

func address(text string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return addr, fmt.Errorf("%q is not an address", text)
	}
	return addr, nil
}
