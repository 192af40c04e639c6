package docker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
)

// An engine's own pools have addresses for about 31 networks.
const manyProjects = 64

func TestComposeManyProjects(t *testing.T) {
	need.Patience(t)
	b := newBackend(t)
	spec := composeSpec(t, map[string]string{"docker-compose.yaml": "services: {main: {}}\n"})
	name := spec.Compose.Project
	limit := make(chan struct{}, 8) // the engine starts no more at a time
	sandboxes := make([]sandbox.Sandbox, manyProjects)
	var wg sync.WaitGroup
	for i := range sandboxes {
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			own, compose := spec, *spec.Compose
			compose.Project = fmt.Sprintf("%s-%d", name, i)
			own.Compose, own.Name = &compose, compose.Project
			sb, err := b.Create(t.Context(), own)
			if err != nil {
				t.Error(err)
				return
			}
			sandboxes[i] = sb
		})
	}
	wg.Wait()
	list, err := api(t).NetworkList(t.Context(), client.NetworkListOptions{Filters: make(client.Filters).Add("label", "proctor.trial="+trialOf(t))})
	if err != nil {
		t.Fatal(err)
	}
	var seen []netip.Prefix
	for _, n := range list.Items {
		for _, c := range n.IPAM.Config {
			for _, other := range seen {
				if other.Overlaps(c.Subnet) {
					t.Errorf("%s overlaps %s", c.Subnet, other)
				}
			}
			seen = append(seen, c.Subnet)
		}
	}
	t.Logf("%d projects at the same time have %d networks", manyProjects, len(seen))
	if want := manyProjects; len(seen) != want {
		t.Errorf("%d networks, want %d", len(seen), want)
	}
	ctx := cleanupContext(t)
	for _, sb := range sandboxes {
		if sb == nil {
			continue
		}
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			if err := sb.Destroy(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if left := inEngine(t, "proctor.trial="+trialOf(t)); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

const crashingProject = `
services:
  main:
    depends_on: {side: {condition: service_healthy}}
    volumes: [data:/data]
  side:
    build: .
    command: [sleep, infinity]
    healthcheck: {test: [CMD, test, -e, /never], interval: 1h, start_period: 1h}
volumes: {data: {}}
`

// TestComposeCollectAfterAKill kills an owner in the middle of bringing up a
// project, and another that has one up.
func TestComposeCollectAfterAKill(t *testing.T) {
	t.Parallel()
	if trial := os.Getenv(crashVar); trial != "" {
		text := crashingProject
		if strings.HasSuffix(trial, "up") {
			text = strings.ReplaceAll(text, "/never", "/")
			text = strings.ReplaceAll(text, "1h", "100ms")
		}
		spec := composeSpec(t, map[string]string{"Dockerfile": "FROM " + testImage + "\nRUN true\n", "docker-compose.yaml": text})
		spec.Compose.Project, spec.Name, spec.Labels.Trial = trial, trial, trial
		fmt.Println("creating")
		if _, err := newBackend(t).Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		select {}
	}
	need.Image(t, testImage)
	for _, phase := range []string{"middle", "up"} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			trial := fmt.Sprintf("crash%d%s", time.Now().UnixNano(), phase)
			const things, names = 4, 2 // two containers, a network, a volume; an image of each service
			killWhen(t, trial, func() bool {
				running, err := api(t).ContainerList(t.Context(), client.ContainerListOptions{
					Filters: make(client.Filters).Add("label", "proctor.trial="+trial),
				})
				if err != nil {
					t.Fatal(err)
				}
				return len(running.Items) == map[string]int{"middle": 1, "up": 2}[phase] &&
					len(inEngine(t, "proctor.trial="+trial)) == things &&
					len(imageNames(t, trial)) == 2*names // each with the claim of its owner
			})
			lines, err := newBackend(t).Collect(t.Context(), procid.ID.Alive)
			if err != nil {
				t.Error(err)
			}
			count := 0
			for _, l := range lines {
				if strings.Contains(l, trial) {
					count++
				}
			}
			// Another process may collect at the same time.
			t.Logf("%d of %d things were removed here", count, things+names)
			if left := append(inEngine(t, "proctor.trial="+trial), imageNames(t, trial)...); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// killWhen runs this test in a process of its own, and kills it when the time
// has come.
func killWhen(t *testing.T, trial string, now func() bool) {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	owner := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	owner.Env = append(os.Environ(), crashVar+"="+trial, "TMPDIR="+t.TempDir(), guestFor(t))
	pipe, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewScanner(pipe)
	for out.Scan() && !strings.Contains(out.Text(), "creating") {
	}
	looks := time.NewTicker(20 * time.Millisecond)
	defer looks.Stop()
	for tries := 0; !now(); tries++ {
		if tries == 3000 {
			t.Error("the project does not come as far")
			break
		}
		<-looks.C
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for out.Scan() {
		t.Log(out.Text())
	}
	_ = owner.Wait()
}

func TestComposeWithoutNetwork(t *testing.T) {
	t.Parallel()
	spec := composeSpec(t, map[string]string{"docker-compose.yaml": `
services:
  main: {}
  side: {image: '` + testImage + `', command: [sleep, infinity]}
`})
	spec.Network.Mode = sandbox.NetworkNone
	sb := up(t, newBackend(t), spec)
	if got := output(t, sb, sandbox.Command{Shell: "ls /sys/class/net"}); got != "lo" {
		t.Errorf("main has interfaces %q", got)
	}
	side, err := api(t).ContainerInspect(t.Context(), spec.Compose.Project+"-side-1", client.ContainerInspectOptions{})
	if err != nil || len(side.Container.NetworkSettings.Networks) != 1 {
		t.Errorf("the other service: %v, %+v", err, side.Container.NetworkSettings)
	}
	clash := composeSpec(t, map[string]string{"docker-compose.yaml": "services: {main: {networks: [default]}}\n"})
	clash.Network.Mode = sandbox.NetworkNone
	if _, err := newBackend(t).Create(t.Context(), clash); err == nil || !strings.Contains(err.Error(), "network_mode") {
		t.Errorf("networks of main without network: got error %v", err)
	}
}

func TestComposeErrorsLeaveNothing(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	side := "{image: '" + testImage + "', "
	for _, tt := range []struct{ name, text, want string }{
		{"main ends at once", "services: {main: {command: [sh, -c, 'echo why; exit 3']}}", "Return code: 1. Stdout: container"},
		{"its log is told", "services: {main: {command: [sh, -c, 'echo why; exit 3']}}", "why"},
		{"another ends at once", "services: {main: {}, side: " + side + "command: ['false']}}", "-side-1 exited (1)"},
		{"a dependency fails", "services: {main: {depends_on: {side: {condition: service_completed_successfully}}}, side: " + side + "command: ['false']}}", `service "side" didn't complete successfully: exit 1`},
		{"a dependency is unhealthy", "services: {main: {depends_on: {side: {condition: service_healthy}}}, side: " + side +
			"command: [sleep, infinity], healthcheck: {test: 'echo sick; exit 1', interval: 50ms, retries: 1}}}", "is unhealthy: sick"},
		{"a dependency has no healthcheck", "services: {main: {depends_on: {side: {condition: service_healthy}}}, side: " + side + "command: [sleep, infinity]}}", "no healthcheck"},
		{"a port in use", "services: {main: {ports: ['0.0.0.0:PORT:80']}, side: " + side + "command: [sleep, infinity], ports: ['0.0.0.0:PORT:80']}}", "port is already allocated"},
		{"no such image", "services: {main: {}, side: {image: 'localhost:1/none', pull_policy: never}}", "image not found"},
		{"an external network that is not there", "services: {main: {networks: [x]}}\nnetworks: {x: {external: true}}", "external network"},
		{"an external volume that is not there", "services: {main: {volumes: ['data:/x']}}\nvolumes: {data: {external: true}}", `volume "data"`},
		{"a program that is not there", "services: {main: {}, side: " + side + "command: [/no/such]}}", "/no/such"},
		{"a key that needs a newer engine", "services: {main: {healthcheck: {test: 'true', start_interval: 1s}}}", "start_interval"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			spec := composeSpec(t, map[string]string{"docker-compose.yaml": strings.ReplaceAll(tt.text, "PORT", "39471")})
			sb, err := b.Create(t.Context(), spec)
			if err == nil {
				if strings.Contains(tt.name, "newer engine") { // this one is new enough
					err = sb.Destroy(t.Context())
				}
				if err == nil && !strings.Contains(tt.name, "newer engine") {
					_ = sb.Destroy(t.Context())
					t.Fatal("no error")
				}
			} else if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one that says %q", err, tt.want)
			}
			if left := inEngine(t, "proctor.trial="+trialOf(t)); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func TestComposeCancelledLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	enough := errors.New("enough")
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			spec := composeSpec(t, map[string]string{"docker-compose.yaml": "services: {main: {volumes: ['data:/x']}}\nvolumes: {data: {}}\n"})
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(i*100)*time.Millisecond, enough)
			defer cancel()
			sb, err := b.Create(ctx, spec)
			if err == nil {
				if err := sb.Destroy(t.Context()); err != nil {
					t.Error(err)
				}
			} else if !errors.Is(err, enough) {
				t.Errorf("got error %v, want the cause", err)
			}
			if left := inEngine(t, "proctor.trial="+trialOf(t)); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func TestComposeStop(t *testing.T) {
	t.Parallel()
	spec := composeSpec(t, map[string]string{"docker-compose.yaml": "services: {main: {}, side: {image: '" + testImage + "', command: [sleep, infinity]}}\n"})
	sb := up(t, newBackend(t), spec)
	hint, err := sb.(sandbox.Stopper).Stop(t.Context())
	if err != nil || !strings.Contains(hint, spec.Compose.Project) {
		t.Errorf("hint %q, %v", hint, err)
	}
	running, err := api(t).ContainerList(t.Context(), client.ContainerListOptions{Filters: make(client.Filters).Add("label", "proctor.trial="+trialOf(t))})
	if err != nil || len(running.Items) > 0 {
		t.Errorf("running: %+v, %v", running.Items, err)
	}
	if there := inEngine(t, "proctor.trial="+trialOf(t)); len(there) != 3 {
		t.Errorf("kept: %q", there)
	}
}

// TestComposeHostFiles looks at what the files of a project may read on the
// host.
func TestComposeHostFiles(t *testing.T) {
	t.Parallel()
	spec := composeSpec(t, map[string]string{
		"docker-compose.yaml": `
services:
  main:
    secrets: [file, {source: word, target: /word, mode: 0400}]
    configs: [{source: text, target: /etc/text}]
    volumes: ['./made/by/the/engine:/made']
secrets: {file: {file: secret.txt}, word: {environment: WORD}}
configs: {text: {content: "is ${WORD}"}}
`,
		"secret.txt": "from a file",
		".env":       "WORD=dotenv\n",
	})
	sb := up(t, newBackend(t), spec)
	for command, want := range map[string]string{
		"cat /run/secrets/file":           "from a file",
		"cat /word; stat -c ' %a' /word":  "dotenv 400",
		"cat /etc/text":                   "is dotenv",
		"echo x >/made/file && ls /made/": "file",
	} {
		if got := output(t, sb, sandbox.Command{Shell: command}); got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(spec.Compose.Dir, "made/by/the/engine/file")); err != nil {
		t.Error(err)
	}
}
