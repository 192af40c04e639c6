package cube_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/cube/internal/democube"
	"github.com/proctor-run/proctor/cube/internal/protocol"
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
			vm := &infra.VMResourceConfig{}
			vm.Name = "vm"
			err := infra.UnsupportedResource(&infra.LocalInfraConfig{}, vm)
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

func TestExceptionVectors(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	eachCase(t, "exceptions.json", func(t *testing.T, c vcase) {
		d := c.obj("details")
		var got *protocol.Error
		switch c.str("class") {
		case "TaskNotFoundException":
			got = protocol.TaskNotFound(d.str("task_id"))
		case "SessionNotFoundException":
			got = protocol.SessionNotFound(d.str("session_id"))
		case "SessionLimitException":
			got = protocol.SessionLimitExceeded(d.num("limit"))
		case "BenchmarkNotFoundException":
			got = protocol.BenchmarkNotFound()
		case "ToolExecutionException":
			got = protocol.ToolExecutionFailed(d.str("tool_name"), d.str("error"))
		case "InvalidActionException":
			got = protocol.InvalidAction(d.str("action_name"), d.str("reason"))
		case "TaskClosedException":
			got = protocol.TaskClosed(d.str("session_id"))
		case "ResourceNotFoundException":
			got = protocol.ResourceNotFound(d.str("uri"))
		case "CUBEException":
			got = protocol.New(c.str("code"), c.str("message"), d.Object)
		case "KeyError":
			p, err := cube.NewPresets(reg, map[string]cube.ToolConfig{"b": democube.NewToolConfig(), "a": democube.NewToolConfig()})
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Get("zz")
			checkError(t, c.id(), err, vcase{cube.Pairs("kind", "KeyError", "message", c.str("message"))})
			return
		default:
			t.Skipf("unknown class %q", c.str("class"))
		}
		if got.ErrorType() != c.str("class") || got.Code != c.str("code") || got.Error() != c.str("message") {
			t.Errorf("got %s %s %q", got.ErrorType(), got.Code, got)
		}
		sameJSON(t, "details", got.Details, d.Object)
	})
}
