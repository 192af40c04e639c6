package compose_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/sandbox/internal/enginetest"
)

const fakeProject = `
x-hide: &hide {proctor.owner: nobody, proctor.sandbox: none, com.docker.compose.project: other}
services:
  main: {depends_on: [side], labels: *hide}
  side:
    build: .
    labels: *hide
    networks: [default, back]
    volumes: [data:/data]
    secrets: [word]
networks: {back: {labels: *hide}}
volumes: {data: {labels: *hide}}
secrets: {word: {environment: HOST_VAR}}
`

// TestFaults lets each call to the engine fail once, by an answer and
// by a cut connection: nothing is left of the project, or the error says what.
func TestFaults(t *testing.T) {
	t.Parallel()
	enginetest.EachCallFails(t, func(e *enginetest.Engine, host string) (enginetest.Made, error) {
		spec := specOf(t, map[string]string{"Dockerfile": "FROM scratch\n", "docker-compose.yaml": fakeProject})
		sb, err := projectEngineAt(t, host).Create(t.Context(), spec)
		if n := len(e.Left()); e.FailAt == 0 && n != 2+2+1+2 {
			t.Errorf("%d things are made: %q", n, e.Left())
		}
		return sb, err
	})
}

// TestDestroyFaults lets each call of Destroy fail once: it reports the
// error, and does the rest when it is called again.
func TestDestroyFaults(t *testing.T) {
	t.Parallel()
	total := 1
	for failAt := 1; failAt <= total; failAt++ {
		e, b := newProjectEngine(t)
		spec := specOf(t, map[string]string{"Dockerfile": "FROM scratch\n", "docker-compose.yaml": fakeProject})
		sb, err := b.Create(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		before := e.Calls
		e.FailAt = before + failAt
		err = sb.Destroy(t.Context())
		total = max(total, e.Calls-before)
		if failed := e.Failed != ""; failed != (err != nil) {
			t.Errorf("call %d, %s: got error %v", failAt, e.Failed, err)
		}
		if err := sb.Destroy(t.Context()); err != nil {
			t.Errorf("call %d, %s: again: %v", failAt, e.Failed, err)
		}
		if left := e.Left(); len(left) > 0 {
			t.Errorf("call %d, %s: left are %q", failAt, e.Failed, left)
		}
	}
	t.Logf("%d calls of Destroy failed in turn", total)
}

func TestSubnetIsTakenByAnother(t *testing.T) {
	t.Parallel()
	e, b := newProjectEngine(t)
	e.Overlapped = 5
	spec := specOf(t, map[string]string{"docker-compose.yaml": "services: {main: {}}\n"})
	up(t, b, spec)
	if len(e.Subnets) != 1 {
		t.Errorf("subnets: %v", e.Subnets)
	}
	e, b = newProjectEngine(t)
	e.Overlapped = 1000
	if _, err := b.Create(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "overlaps") {
		t.Errorf("got error %v", err)
	}
	if left := e.Left(); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

func TestServiceThatFails(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		`{"Status":"exited","ExitCode":3}`: "exited (3)",
		`{"Status":"running","Running":true,"Health":{"Status":"unhealthy","Log":[{"Output":"no answer"}]}}`: "is unhealthy: no answer",
		`null`: "no state",
	} {
		e, b := newProjectEngine(t)
		e.State = state
		_, err := b.Create(t.Context(), specOf(t, map[string]string{"docker-compose.yaml": "services: {main: {}}\n"}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", state, err, want)
		}
		if want != "no state" && !strings.Contains(err.Error(), "Return code: 1") {
			t.Errorf("%s: the error tells no return code: %v", state, err)
		}
		if left := e.Left(); len(left) > 0 {
			t.Errorf("%s: left are %q", state, left)
		}
	}
}

func TestOfALivingProcess(t *testing.T) {
	t.Parallel()
	e, b := newProjectEngine(t)
	spec := specOf(t, map[string]string{"docker-compose.yaml": "services: {main: {}}\n"})
	self := spec.Labels.Owner
	stale := map[string]string{"com.docker.compose.project": spec.Compose.Project}
	owned := maps.Clone(stale)
	owned["proctor.owner"] = self.String()
	e.Things["container old"], e.Things["network old"] = stale, stale
	other := spec
	other.Labels.Owner.PID++ // a process of its own, that is not this one
	e.Things["container living"] = owned
	if _, err := b.Create(t.Context(), other); err == nil || !strings.Contains(err.Error(), "in use by process") {
		t.Errorf("got error %v", err)
	}
	if n := len(e.Left()); n != 3 {
		t.Errorf("left are %q", e.Left())
	}
	delete(e.Things, "container living")
	up(t, b, other)
	if left := e.Left(); slices.Contains(left, "container old") || slices.Contains(left, "network old") {
		t.Errorf("an earlier run's things are left: %q", left)
	}
}
