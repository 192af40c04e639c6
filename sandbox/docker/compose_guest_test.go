package docker_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/compose"
)

// What the compose file makes of main runs beside the supervisor, as the user,
// in the directory and with the variables that it names.
func TestComposeMainBesideTheSupervisor(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	spec := composeSpec(t, map[string]string{"docker-compose.yaml": `
services:
  main:
    init: true
    stdin_open: true
    tty: true
    restart: always
    user: daemon
    working_dir: /tmp
    hostname: somewhere
    environment: {OF_MAIN: "yes"}
    entrypoint: [sh, -c, 'echo "$$(id -un) $$PWD $$OF_MAIN $$HOSTNAME" >/tmp/service; exec cat']
    command: []
    healthcheck: {test: [CMD, test, -s, /tmp/service], interval: 1s, retries: 20}
`})
	sb := up(t, b, spec)
	if s := sb.(sandbox.Supervised).Supervision(); s != sandbox.SupervisionGuest {
		t.Fatalf("supervision %q", s)
	}
	if got := output(t, sb, sandbox.Command{Shell: `cat /tmp/service; echo "$(id -un) $PWD $OF_MAIN $HOSTNAME"; tr '\0' ' ' </proc/1/cmdline`}); got != "daemon /tmp yes somewhere\ndaemon /tmp yes somewhere\n/.proctor/proctor-guest" {
		t.Errorf("got %q", got)
	}
	procs, err := sb.(sandbox.ProcessLister).Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, p := range procs {
		if p.Name == "cat" {
			named++
		}
	}
	if named != 1 {
		t.Errorf("the service is not there once: %+v", procs)
	}
}

// A main whose command ends is not up, although its supervisor runs.
func TestComposeMainThatEnds(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	spec := composeSpec(t, map[string]string{"docker-compose.yaml": `
services:
  main:
    entrypoint: [sh, -c, 'echo this is why; exit 3']
`})
	_, err := b.Create(t.Context(), spec)
	var failed *compose.Error
	if !errors.As(err, &failed) || !strings.Contains(failed.Output, "exited (3)") || !strings.Contains(failed.Output, "this is why") {
		t.Errorf("got error %v", err)
	}
	if left := inEngine(t, "proctor.trial="+trialOf(t)); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A main that cannot be supervised from inside is by the engine, and a person
// is told.
func TestComposeMainByTheEngine(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	for keys, want := range map[string]string{
		"cap_drop: [ALL]":                            "capability CHOWN",
		"cap_drop: [cap_kill]":                       "capability KILL",
		"{cap_drop: [ALL], cap_add: [SETUID, KILL]}": "capability CHOWN",
		"pid: service:side":                          "shares the processes of others",
	} {
		t.Run(keys, func(t *testing.T) {
			t.Parallel()
			var said []string
			file := "services:\n  main:\n    " + strings.ReplaceAll(strings.Trim(keys, "{}"), "], ", "]\n    ") + "\n"
			if strings.Contains(keys, "side") {
				file += "  side:\n    image: " + testImage + "\n    command: [sleep, infinity]\n    init: true\n"
			}
			spec := composeSpec(t, map[string]string{"docker-compose.yaml": file})
			spec.Warn = func(m string) { said = append(said, m) }
			sb := up(t, b, spec)
			if s := sb.(sandbox.Supervised).Supervision(); s != sandbox.SupervisionEngine || !strings.Contains(strings.Join(said, "\n"), want) {
				t.Errorf("supervision %q, said %q", s, said)
			}
			mark, err := sb.Mark(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			output(t, sb, sandbox.Command{Shell: "sleep 1234 >/dev/null 2>&1 </dev/null & true"})
			if err := sb.KillTree(t.Context(), mark, 10*time.Millisecond); err != nil {
				t.Error(err)
			}
			if got := output(t, sb, sandbox.Command{Shell: `for p in /proc/[0-9]*/cmdline; do tr '\0' ' ' <$p; echo; done 2>/dev/null | grep -c '^sleep 1234' || true`}); got != "0" {
				t.Errorf("%s processes are left", got)
			}
		})
	}
}

// A main that may look into its supervisor has it all the same, and a person is
// told.
func TestComposeMainThatReachesTheSupervisor(t *testing.T) {
	t.Parallel()
	var said []string
	spec := composeSpec(t, map[string]string{"docker-compose.yaml": "services:\n  main:\n    cap_add: [SYS_PTRACE]\n"})
	spec.Warn = func(m string) { said = append(said, m) }
	sb := up(t, newBackend(t), spec)
	if s := sb.(sandbox.Supervised).Supervision(); s != sandbox.SupervisionGuest || !strings.Contains(strings.Join(said, "\n"), "SYS_PTRACE: what runs in it can reach") {
		t.Errorf("supervision %q, said %q", s, said)
	}
}
