package compose

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
)

// Versions of the API that keys need. Older engines would ignore them without a
// word.
const (
	startIntervalVersion = "1.44"
	macAddressVersion    = "1.44"
)

// supported refuses what no sandbox can have, and what the engine is too old
// for.
func (p *project) supported(ctx context.Context) error {
	// Ending a command's processes would end what it has never started.
	if pid := p.model.Services[mainService].Pid; pid != "" && !strings.HasPrefix(pid, types.ServicePrefix) {
		key := "services." + mainService + ".pid"
		return fmt.Errorf("%s: key %s: service %s cannot share the processes of others: %w",
			locate(key, p.spec.Compose.Files), key, mainService, sandbox.ErrUnsupported)
	}
	needs := p.needs()
	if len(needs) == 0 {
		return nil
	}
	ping, err := p.e.API.Ping(ctx, client.PingOptions{})
	if err != nil {
		return fmt.Errorf("asking the engine for its version: %w", err)
	}
	var errs []error
	version := ping.APIVersion
	for _, key := range slices.Sorted(maps.Keys(needs)) {
		if older(version, needs[key]) {
			errs = append(errs, fmt.Errorf("%s: key %s needs an engine with API %s, this one has %s: %w",
				locate(key, p.spec.Compose.Files), key, needs[key], version, sandbox.ErrUnsupported))
		}
	}
	return errors.Join(errs...)
}

// needs lists the keys that need a newer API than any engine has, with its
// version.
func (p *project) needs() map[string]string {
	needs := map[string]string{}
	for name, s := range p.model.Services {
		if h := s.HealthCheck; h != nil && h.StartInterval != nil {
			needs["services."+name+".healthcheck.start_interval"] = startIntervalVersion
		}
		if s.MacAddress != "" {
			needs["services."+name+".mac_address"] = macAddressVersion
		}
		for key, n := range s.Networks {
			if n != nil && n.MacAddress != "" {
				needs["services."+name+".networks."+key+".mac_address"] = macAddressVersion
			}
		}
	}
	return needs
}

// older compares API versions, MAJOR.MINOR.
func older(version, than string) bool {
	var a, b [2]int
	_, err := fmt.Sscanf(version, "%d.%d", &a[0], &a[1])
	_, err2 := fmt.Sscanf(than, "%d.%d", &b[0], &b[1])
	return err == nil && err2 == nil && slices.Compare(a[:], b[:]) < 0
}
