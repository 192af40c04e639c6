package compose

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

// makeNetworks makes the project's own networks and finds the external ones.
func (p *project) makeNetworks(ctx context.Context) error {
	for _, key := range slices.Sorted(maps.Keys(p.model.Networks)) {
		n := p.model.Networks[key]
		if n.External {
			if _, err := p.e.API.NetworkInspect(ctx, n.Name, client.NetworkInspectOptions{}); err != nil {
				return fmt.Errorf("network %q: external network %q: %w", key, n.Name, err)
			}
			continue
		}
		if err := p.makeNetwork(ctx, key, n); err != nil {
			return fmt.Errorf("network %q: %w", key, err)
		}
	}
	return nil
}

// makeNetwork makes one network. Where the files name no addresses, a small
// subnet is chosen, again when somebody else was quicker to take it.
func (p *project) makeNetwork(ctx context.Context, key string, n types.NetworkConfig) error {
	o, err := p.networkOptions(key, n)
	if err != nil {
		return err
	}
	if whose, err := p.namesake(ctx, n.Name); err != nil || whose != "" {
		p.note(whose != "", "network %s is shared: it was there before, %s", n.Name, whose)
		return err
	}
	ours := len(n.Ipam.Config) == 0 && (o.Driver == "" || o.Driver == "bridge") && (n.EnableIPv4 == nil || *n.EnableIPv4)
	if !ours {
		return p.createNetwork(ctx, n.Name, o)
	}
	for try := 1; ; try++ {
		used, err := p.e.usedSubnets(ctx)
		if err != nil {
			return err
		}
		free, err := freeSubnet(p.e.Subnets, used, p.members(key))
		if err != nil {
			return err
		}
		o.IPAM.Config = []network.IPAMConfig{{Subnet: free}}
		err = p.createNetwork(ctx, n.Name, o)
		if err == nil || try == subnetTries || !overlaps(err) {
			return err
		}
	}
}

// namesake says whose a network of the same name is, empty when there is none.
// Engines allow two networks of one name, and then mix them up.
func (p *project) namesake(ctx context.Context, name string) (string, error) {
	list, err := p.e.API.NetworkList(ctx, client.NetworkListOptions{Filters: make(client.Filters).Add("name", name)})
	if err != nil {
		return "", fmt.Errorf("listing networks: %w", err)
	}
	for _, n := range list.Items {
		if n.Name == name {
			return describeOwner(n.Labels), nil
		}
	}
	return "", nil
}

func describeOwner(labels map[string]string) string {
	if project := labels[labelProject]; project != "" {
		return fmt.Sprintf("of compose project %q", project)
	}
	return "which is not a compose project's"
}

func (p *project) createNetwork(ctx context.Context, name string, o client.NetworkCreateOptions) error {
	callCtx, cancel := engine.Making(ctx)
	defer cancel()
	if _, err := p.e.API.NetworkCreate(callCtx, name, o); err != nil {
		return fmt.Errorf("creating network %q: %w", name, err)
	}
	return nil
}

// overlaps reports whether the engine refused a subnet because it is in use.
func overlaps(err error) bool {
	return engine.Says(err, "overlap", "already used", "already in use") || cerrdefs.IsConflict(err) && engine.Says(err, "subnet")
}

// members is how many containers join a network.
func (p *project) members(key string) int {
	count := 0
	for _, s := range p.model.Services {
		if _, ok := s.Networks[key]; ok {
			count += s.GetScale()
		}
	}
	return count
}

func (p *project) networkOptions(key string, n types.NetworkConfig) (client.NetworkCreateOptions, error) {
	o := client.NetworkCreateOptions{
		Driver:     n.Driver,
		EnableIPv4: n.EnableIPv4,
		EnableIPv6: n.EnableIPv6,
		Internal:   n.Internal,
		Attachable: n.Attachable,
		Options:    n.DriverOpts,
		IPAM:       &network.IPAM{Driver: n.Ipam.Driver, Options: n.Ipam.Options},
		Labels:     p.labels(n.Labels),
	}
	o.Labels[labelNetwork] = key
	for _, pool := range n.Ipam.Config {
		c, err := ipamPool(pool)
		if err != nil {
			return o, err
		}
		o.IPAM.Config = append(o.IPAM.Config, c)
	}
	return o, nil
}

func ipamPool(pool *types.IPAMPool) (c network.IPAMConfig, err error) {
	for dst, text := range map[*netip.Prefix]string{&c.Subnet: pool.Subnet, &c.IPRange: pool.IPRange} {
		if text == "" {
			continue
		}
		if *dst, err = netip.ParsePrefix(text); err != nil {
			return c, fmt.Errorf("%q is not a range of addresses", text)
		}
	}
	if pool.Gateway != "" {
		if c.Gateway, err = address(pool.Gateway); err != nil {
			return c, err
		}
	}
	for name, text := range pool.AuxiliaryAddresses {
		addr, err := address(text)
		if err != nil {
			return c, err
		}
		if c.AuxAddress == nil {
			c.AuxAddress = map[string]netip.Addr{}
		}
		c.AuxAddress[name] = addr
	}
	return c, nil
}

// firstNetwork is what a container is created with. Older engines take no more
// than one network there; the others are joined before it starts.
func (p *project) firstNetwork(s *types.ServiceConfig, n int) (*network.NetworkingConfig, error) {
	keys := s.NetworksByPriority()
	if s.NetworkMode != "" || len(keys) == 0 {
		return nil, nil
	}
	e, err := p.endpoint(s, n, keys[0])
	if err != nil {
		return nil, err
	}
	return &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
		p.model.Networks[keys[0]].Name: e,
	}}, nil
}

// joinNetworks joins the networks of a container but the first.
func (p *project) joinNetworks(ctx context.Context, s *types.ServiceConfig, n int, id string) error {
	keys := s.NetworksByPriority()
	if s.NetworkMode != "" || len(keys) < 2 {
		return nil
	}
	for _, key := range keys[1:] {
		e, err := p.endpoint(s, n, key)
		if err != nil {
			return err
		}
		name := p.model.Networks[key].Name
		if _, err := p.e.API.NetworkConnect(ctx, name, client.NetworkConnectOptions{Container: id, EndpointConfig: e}); err != nil {
			return fmt.Errorf("joining network %q: %w", name, err)
		}
	}
	return nil
}

// endpoint is how the n-th container of a service is on a network.
func (p *project) endpoint(s *types.ServiceConfig, n int, key string) (*network.EndpointSettings, error) {
	e := &network.EndpointSettings{Aliases: []string{containerNameOf(p.model.Name, s, n)}}
	c := s.Networks[key]
	if c == nil || c.ServiceNameAliasEnabled() {
		e.Aliases = append(e.Aliases, s.Name)
	}
	mac := s.MacAddress
	if c != nil {
		e.Aliases = append(e.Aliases, c.Aliases...)
		e.DriverOpts = c.DriverOpts
		if c.MacAddress != "" {
			mac = c.MacAddress
		}
		addresses, err := endpointAddresses(c)
		if err != nil {
			return nil, fmt.Errorf("service %q: network %q: %w", s.Name, key, err)
		}
		e.IPAMConfig = addresses
	}
	if mac != "" {
		parsed, err := net.ParseMAC(mac)
		if err != nil {
			return nil, fmt.Errorf("service %q: mac_address: %w", s.Name, err)
		}
		e.MacAddress = network.HardwareAddr(parsed)
	}
	for _, link := range s.Links {
		name, alias, ok := strings.Cut(link, ":")
		if !ok {
			alias = name
		}
		for i := range p.containers[name] {
			other := p.model.Services[name]
			e.Links = append(e.Links, containerNameOf(p.model.Name, &other, i+1)+":"+alias)
		}
	}
	for _, link := range s.ExternalLinks {
		name, alias, ok := strings.Cut(link, ":")
		if !ok {
			alias = name
		}
		e.Links = append(e.Links, name+":"+alias)
	}
	return e, nil
}

// endpointAddresses are the addresses that the files give a container; nil for
// none.
func endpointAddresses(c *types.ServiceNetworkConfig) (*network.EndpointIPAMConfig, error) {
	if c.Ipv4Address == "" && c.Ipv6Address == "" && len(c.LinkLocalIPs) == 0 {
		return nil, nil
	}
	out := &network.EndpointIPAMConfig{}
	for dst, text := range map[*netip.Addr]string{&out.IPv4Address: c.Ipv4Address, &out.IPv6Address: c.Ipv6Address} {
		if text == "" {
			continue
		}
		addr, err := address(text)
		if err != nil {
			return nil, err
		}
		*dst = addr
	}
	for _, text := range c.LinkLocalIPs {
		addr, err := address(text)
		if err != nil {
			return nil, err
		}
		out.LinkLocalIPs = append(out.LinkLocalIPs, addr)
	}
	return out, nil
}

// makeVolumes makes the project's own volumes and finds the external ones.
func (p *project) makeVolumes(ctx context.Context) error {
	for _, key := range slices.Sorted(maps.Keys(p.model.Volumes)) {
		v := p.model.Volumes[key]
		found, err := p.e.API.VolumeInspect(ctx, v.Name, client.VolumeInspectOptions{})
		switch {
		case err != nil && !cerrdefs.IsNotFound(err) || err != nil && bool(v.External):
			return fmt.Errorf("volume %q: %w", key, err)
		case err == nil && bool(v.External):
			continue
		case err == nil:
			p.note(true, "volume %s is shared: it was there before, %s", v.Name, describeOwner(found.Volume.Labels))
			continue
		}
		labels := p.labels(v.Labels)
		labels[labelVolume] = key
		callCtx, cancel := engine.Making(ctx)
		_, err = p.e.API.VolumeCreate(callCtx, client.VolumeCreateOptions{
			Name: v.Name, Driver: v.Driver, DriverOpts: v.DriverOpts, Labels: labels,
		})
		cancel()
		if err != nil {
			return fmt.Errorf("volume %q: %w", key, err)
		}
	}
	return nil
}
