package compose

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox/internal/engine"
	"github.com/proctor-run/proctor/sandbox/internal/entrypoint"
)

// Labels by which docker compose knows what belongs to a project.
const (
	labelProject   = "com.docker.compose.project"
	labelService   = "com.docker.compose.service"
	labelNumber    = "com.docker.compose.container-number"
	labelOneOff    = "com.docker.compose.oneoff"
	labelHash      = "com.docker.compose.config-hash"
	labelFiles     = "com.docker.compose.project.config_files"
	labelDirectory = "com.docker.compose.project.working_dir"
	labelImage     = "com.docker.compose.image"
	labelDepends   = "com.docker.compose.depends_on"
	labelNetwork   = "com.docker.compose.network"
	labelVolume    = "com.docker.compose.volume"
	labelVersion   = "com.docker.compose.version"
)

// composeVersion is the version of docker compose whose behaviour is kept.
const composeVersion = "2.26.1"

// containerNameOf is what the n-th container of a service is called.
func containerNameOf(project string, s *types.ServiceConfig, n int) string {
	if s.ContainerName != "" {
		return s.ContainerName
	}
	return fmt.Sprintf("%s-%s-%d", project, s.Name, n)
}

// containerOptions translates the n-th container of a service.
func (p *project) containerOptions(s *types.ServiceConfig, img Image, n int) (client.ContainerCreateOptions, error) {
	o := client.ContainerCreateOptions{Name: containerNameOf(p.model.Name, s, n)}
	fail := func(key string, err error) (client.ContainerCreateOptions, error) {
		return o, fmt.Errorf("service %q: %s: %w", s.Name, key, err)
	}
	config := &container.Config{
		Image:      img.Ref,
		Hostname:   s.Hostname,
		Domainname: s.DomainName,
		User:       s.User,
		Tty:        s.Tty,
		OpenStdin:  s.StdinOpen,
		WorkingDir: s.WorkingDir,
		StopSignal: s.StopSignal,
		Env:        environment(s.Environment),
		Labels:     p.containerLabels(s, img, n),
	}
	if s.Command != nil {
		config.Cmd = s.Command
	}
	if s.Entrypoint != nil {
		config.Entrypoint = s.Entrypoint
	}
	if s.Name == mainService && slices.Equal(s.Command, waits) {
		config.Cmd = entrypoint.KeepAlive()
	}
	if s.StopGracePeriod != nil {
		config.StopTimeout = new(int(math.Ceil(time.Duration(*s.StopGracePeriod).Seconds())))
	}
	config.Healthcheck = healthcheck(s.HealthCheck)
	host, err := p.hostConfig(s)
	if err != nil {
		return o, err
	}
	if config.ExposedPorts, host.PortBindings, err = ports(s); err != nil {
		return fail("ports", err)
	}
	o.Config, o.HostConfig = config, host
	if o.Platform, err = engine.Platform(s.Platform); err != nil {
		return fail("platform", err)
	}
	o.NetworkingConfig, err = p.firstNetwork(s, n)
	return o, err
}

// environment lists variables in the order of their names. One without a value
// is removed from those of the image.
func environment(m types.MappingWithEquals) []string {
	list := make([]string, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if v := m[name]; v != nil {
			list = append(list, name+"="+*v)
		} else {
			list = append(list, name)
		}
	}
	return list
}

func (p *project) containerLabels(s *types.ServiceConfig, img Image, n int) map[string]string {
	labels := p.labels(s.Labels)
	for k, v := range map[string]string{
		labelService:   s.Name,
		labelNumber:    strconv.Itoa(n),
		labelOneOff:    "False",
		labelFiles:     strings.Join(p.spec.Compose.Files, ","),
		labelDirectory: p.model.WorkingDir,
		labelImage:     img.ID,
		labelHash:      hashOf(s),
	} {
		labels[k] = v
	}
	depends := make([]string, 0, len(s.DependsOn))
	for _, name := range slices.Sorted(maps.Keys(s.DependsOn)) {
		d := s.DependsOn[name]
		depends = append(depends, fmt.Sprintf("%s:%s:%t", name, d.Condition, d.Restart))
	}
	labels[labelDepends] = strings.Join(depends, ",")
	return labels
}

// hashOf tells configurations of a service apart.
func hashOf(s *types.ServiceConfig) string {
	text, _ := json.Marshal(s) // what cannot be written is no reason to fail
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// healthcheck translates a service's; nil leaves the image's.
func healthcheck(h *types.HealthCheckConfig) *container.HealthConfig {
	if h == nil {
		return nil
	}
	if h.Disable {
		return &container.HealthConfig{Test: []string{"NONE"}}
	}
	out := &container.HealthConfig{Test: h.Test}
	for dst, src := range map[*time.Duration]*types.Duration{
		&out.Interval: h.Interval, &out.Timeout: h.Timeout, &out.StartPeriod: h.StartPeriod, &out.StartInterval: h.StartInterval,
	} {
		if src != nil {
			*dst = time.Duration(*src)
		}
	}
	if h.Retries != nil {
		out.Retries = int(min(*h.Retries, math.MaxInt32))
	}
	return out
}

// ports are those that a service exposes, and those that it publishes.
func ports(s *types.ServiceConfig) (network.PortSet, network.PortMap, error) {
	set, published := network.PortSet{}, network.PortMap{}
	for _, text := range s.Expose {
		span, protocol, _ := strings.Cut(text, "/")
		first, last, isRange := strings.Cut(span, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 16)
		to, err2 := strconv.ParseUint(last, 10, 16)
		if err != nil || err2 != nil || from > to {
			return nil, nil, fmt.Errorf("exposing %q: want PORT, PORT/PROTOCOL or a range", text)
		}
		for port := from; port <= to; port++ {
			parsed, err := portOf(port, protocol)
			if err != nil {
				return nil, nil, err
			}
			set[parsed] = struct{}{}
		}
	}
	for _, p := range s.Ports {
		port, err := portOf(uint64(p.Target), p.Protocol)
		if err != nil {
			return nil, nil, err
		}
		binding := network.PortBinding{HostPort: p.Published}
		if p.HostIP != "" {
			if binding.HostIP, err = address(p.HostIP); err != nil {
				return nil, nil, err
			}
		}
		set[port] = struct{}{}
		published[port] = append(published[port], binding)
	}
	return set, published, nil
}

func portOf(number uint64, protocol string) (network.Port, error) {
	if protocol == "" {
		protocol = "tcp"
	}
	port, err := network.ParsePort(strconv.FormatUint(number, 10) + "/" + protocol)
	if err != nil {
		return network.Port{}, fmt.Errorf("port %d/%s: %w", number, protocol, err)
	}
	return port, nil
}
