package cube_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/cube/internal/democube"
)

// probing is a backend whose health check answers as told.
type probing struct {
	scriptedBackend
	probe string
}

func (p *probing) HealthCheck(context.Context, cube.Container) (bool, error) {
	if p.probe == "raise" {
		return false, errors.New("probe died")
	}
	return p.probe == "ok", nil
}

func TestResourceVectors(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	eachCase(t, "resource.json", func(t *testing.T, c vcase) {
		switch c.str("op") {
		case "provision_store_filename", "docker_run_script": // of package infra, which tests them
		case "requirements":
			requirements(t, reg, c)
		case "ResourceNotReadyError":
			err := infra.ResourceNotReady("vm", "local")
			if err.Error() != c.str("message") || cube.ErrorType(err) != c.str("op") {
				t.Errorf("got %q", err)
			}
		case "UnsupportedResourceType":
			err := infra.UnsupportedResource(&infra.LocalInfraConfig{}, infra.NewVMResourceConfig("vm"))
			if err.Error() != c.str("message") || cube.ErrorType(err) != c.str("op") {
				t.Errorf("got %q", err)
			}
		case "port_from_url":
			port, err := infra.PortFromURL(c.str("url"))
			if c.has("error") {
				checkError(t, c.id(), err, c.obj("error"))
			} else if err != nil || port != c.num("port") {
				t.Errorf("port %d, %v; want %d", port, err, c.num("port"))
			}
		case "run_health_check":
			log := &democube.Log{}
			err := cube.RunHealthCheck(t.Context(), &probing{probe: c.str("probe")}, &scriptedContainer{"c", log})
			if c.has("error") {
				checkError(t, c.id(), err, c.obj("error"))
			} else if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(c.strs("calls"), log.Lines()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		default:
			t.Skipf("unknown op %q", c.str("op"))
		}
	})
}

// dockerOnly is an infra that can serve containers and nothing else.
type dockerOnly struct{ scriptedInfra }

func (*dockerOnly) Capabilities() []string { return []string{infra.NeedsDocker} }

func requirements(t *testing.T, reg *cube.Registry, c vcase) {
	t.Helper()
	r, err := cube.FromValue[infra.Resource](reg, c.value("resource"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.strs("requirements"), append([]string{}, r.Requirements()...)); diff != "" {
		t.Errorf("requirements (-want +got):\n%s", diff)
	}
	if got := infra.CanServe(&dockerOnly{}, r); got != c.flag("served_by_docker_only") {
		t.Errorf("served by docker only: %v", got)
	}
}

// TestExceptionVectors: the others are package protocol's, which tests them.
func TestExceptionVectors(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	eachCase(t, "exceptions.json", func(t *testing.T, c vcase) {
		if c.str("class") != "KeyError" {
			return
		}
		p, err := cube.NewPresets(reg, map[string]cube.ToolConfig{"b": democube.NewToolConfig(), "a": democube.NewToolConfig()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Get("zz")
		checkError(t, c.id(), err, vcase{cube.Pairs("kind", "KeyError", "message", c.str("message"))})
	})
}
