package docker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
)

func base() sandbox.Spec { return sandbox.Spec{Image: sandbox.Image{Ref: testImage}} }

func TestContainerIsAsHarborMakesIt(t *testing.T) {
	t.Parallel()
	spec := base()
	spec.Resources = sandbox.Resources{CPUs: 0.5, MemoryMB: 256}
	dir := t.TempDir()
	spec.Mounts = []sandbox.Mount{{Source: dir, Target: "/logs/agent"}, {Source: dir, Target: "/readonly", ReadOnly: true}}
	spec.Env = []string{"SECRET=1"}
	sb := create(t, newBackend(t), spec)
	r, err := api(t).ContainerInspect(t.Context(), sb.ID(), client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	host, config := r.Container.HostConfig, r.Container.Config
	if host.NanoCPUs != 500_000_000 || host.Memory != 268_435_456 {
		t.Errorf("limits: %d nano CPUs and %d bytes", host.NanoCPUs, host.Memory)
	}
	if host.AutoRemove || host.Init != nil && *host.Init || !host.RestartPolicy.IsNone() {
		t.Errorf("auto-remove %v, init %v, restart %v; want none of them", host.AutoRemove, host.Init, host.RestartPolicy)
	}
	for _, m := range r.Container.Mounts {
		if m.Propagation != "rprivate" || m.RW == (m.Destination == "/readonly" || m.Destination == "/.proctor/proctor-guest") {
			t.Errorf("mount %s: propagation %q, writable %v", m.Destination, m.Propagation, m.RW)
		}
	}
	if slices.Contains(config.Env, "SECRET=1") {
		t.Error("the Spec's environment is on the container")
	}
	self := labels(t)
	if config.Labels["proctor.owner"] != self.Owner.String() || config.Labels["proctor.job"] != "test" || config.Labels["proctor.trial"] != trialOf(t) {
		t.Errorf("labels: %v", config.Labels)
	}
	if n := len(r.Container.NetworkSettings.Networks); n != 1 {
		t.Errorf("the container is on %d networks", n)
	}
}

func TestEntrypoint(t *testing.T) {
	t.Parallel()
	t.Run("supervised", func(t *testing.T) { t.Parallel(); entrypoints(t, newBackend(t)) })
	t.Run("by the engine", func(t *testing.T) { t.Parallel(); entrypoints(t, besides(t)["none"]) })
}

func entrypoints(t *testing.T, b *docker.Backend) {
	for _, tt := range []struct{ name, entrypoint, want, fails string }{
		{"one that carries on", `["sh","-c","echo yes >/ran; exec \"$@\"","sh"]`, "yes", ""},
		{"one that ends", `["sh","-c","echo no database; exit 3"]`, "", "exit code 3, and a container ends with its first process; its last output: no database"},
		{"one that cannot use the command", `["cat"]`, "", "the image's entrypoint has ended with exit code 1"},
		{"a service stays beside the commands", `["sh","-c","echo yes >/ran; while :; do sleep 1; done"]`, "yes", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := writeFiles(t, map[string]string{"Dockerfile": freshFrom() + "ENTRYPOINT " + tt.entrypoint + "\n"})
			for range 2 { // the second time it is known
				spec := buildSpec(dir)
				spec.Name, spec.Labels = t.Name(), labels(t)
				sb, err := b.Create(t.Context(), spec)
				if tt.fails != "" {
					if err == nil || !strings.Contains(err.Error(), tt.fails) {
						t.Errorf("got error %v, want one that says %q", err, tt.fails)
					}
					if left := leftovers(t, trialOf(t)); len(left) > 0 {
						t.Errorf("left behind: %v", left)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				look := "for i in $(seq 300); do test -s /ran && break; sleep 0.1; done; cat /ran" // it need not have come that far
				if got := output(t, sb, sandbox.Command{Shell: look}); got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
				if err := sb.Destroy(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A container ends with its first process, whenever that ends.
func TestEntrypointThatEndsLater(t *testing.T) {
	t.Parallel()
	dir := writeFiles(t, map[string]string{"Dockerfile": freshFrom() +
		`ENTRYPOINT ["sh","-c","while ! test -e /stop; do sleep 0.1; done; echo told to; exit 0"]` + "\n"})
	sb := create(t, newBackend(t), buildSpec(dir))
	_, err := sb.Exec(t.Context(), sandbox.Command{Shell: "touch /stop; sleep 1000"})
	for range 2 {
		var lost *sandbox.LostError
		if !errors.As(err, &lost) || !strings.Contains(lost.Reason, "exit code 0") || !strings.Contains(lost.Reason, "told to") {
			t.Fatalf("got error %v", err)
		}
		_, err = sb.Exec(t.Context(), sandbox.Command{Shell: "true"})
	}
}

// TestServicesBeginAgain: EndAll ends what runs beside the commands without an end of the
// sandbox, however that takes it, and StartServices starts it again.
func TestServicesBeginAgain(t *testing.T) {
	t.Parallel()
	const (
		service = `trap "exit 0" TERM; echo ran >>/ran; while :; do sleep 0.1; done`
		runs    = `for i in $(seq 300); do [ "$(wc -l </ran)" = %d ] && break; sleep 0.1; done; cat /ran`
	)
	b := newBackend(t)
	for name, sb := range map[string]sandbox.Sandbox{
		"an entrypoint": create(t, b, buildSpec(writeFiles(t, map[string]string{
			"Dockerfile": freshFrom() + "ENTRYPOINT [\"sh\",\"-c\"," + strconv.Quote(service) + "]\n",
		}))),
		"a compose service": up(t, b, composeSpec(t, map[string]string{
			"docker-compose.yaml": "services:\n  main:\n    init: false\n    command: [sh, -c, '" + service + "']\n",
		})),
	} {
		restarter, ok := sandbox.As[sandbox.Restarter](sb)
		if !ok {
			t.Fatalf("%s: the sandbox is no Restarter", name)
		}
		for n := 1; n <= 3; n++ {
			if got, want := output(t, sb, sandbox.Command{Shell: fmt.Sprintf(runs, n)}), strings.TrimSpace(strings.Repeat("ran\n", n)); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
			if err := restarter.EndAll(t.Context(), time.Second); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := output(t, sb, sandbox.Command{Shell: `grep -lsa '^trap' /proc/[0-9]*/cmdline | wc -l`}); got != "0" {
				t.Errorf("%s: %s processes of the service are left", name, got)
			}
			if err := restarter.StartServices(t.Context()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

// leftovers are the containers of a trial.
func leftovers(t testing.TB, trial string) []string {
	t.Helper()
	list, err := api(t).ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", "proctor.trial="+trial)})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range list.Items {
		names = append(names, c.Names...)
	}
	return names
}

func TestCreateErrorsLeaveNothing(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	for _, tt := range []struct {
		name   string
		change func(*sandbox.Spec)
		is     error
		want   string
	}{
		{name: "a mount's source is missing", change: func(s *sandbox.Spec) {
			s.Mounts = []sandbox.Mount{{Source: "/no/such/source", Target: "/x"}}
		}, want: "/no/such/source"},
		{name: "a mount's target is the root", change: func(s *sandbox.Spec) {
			s.Mounts = []sandbox.Mount{{Source: "/tmp", Target: "/"}}
		}, want: "'/'"},
		{name: "a file over a directory", change: func(s *sandbox.Spec) {
			s.Mounts = []sandbox.Mount{{Source: "/etc/passwd", Target: "/usr"}}
		}, want: "not a directory"},
		{name: "too little memory", change: func(s *sandbox.Spec) { s.Resources.MemoryMB = 1 }, want: "memory"},
		{name: "an unknown network mode", change: func(s *sandbox.Spec) { s.Network.Mode = "some" }, is: sandbox.ErrUnsupported, want: "some"},
		{name: "GPUs", change: func(s *sandbox.Spec) { s.Resources.GPUs = 1 }, is: sandbox.ErrUnsupported, want: "GPU"},
		{name: "no image", change: func(s *sandbox.Spec) { s.Image = sandbox.Image{} }, want: "image"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			spec := base()
			spec.Name, spec.Labels = t.Name(), labels(t)
			tt.change(&spec)
			_, err := b.Create(t.Context(), spec)
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got error %v, want one that says %q", err, tt.want)
			}
			if left := leftovers(t, trialOf(t)); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestCreateCancelledLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	cause := errors.New("enough")
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(i*40)*time.Millisecond, cause)
			defer cancel()
			spec := base()
			spec.Name, spec.Labels = t.Name(), labels(t)
			sb, err := b.Create(ctx, spec)
			if err == nil {
				if err := sb.Destroy(t.Context()); err != nil {
					t.Error(err)
				}
			} else if !errors.Is(err, cause) {
				t.Errorf("got error %v, want the cause", err)
			}
			if left := leftovers(t, trialOf(t)); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestNoNetworksAreMade(t *testing.T) {
	t.Parallel()
	for mode, want := range map[sandbox.NetworkMode]string{sandbox.NetworkPublic: "bridge", sandbox.NetworkNone: "none"} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			spec := base()
			spec.Network.Mode = mode
			sb := create(t, newBackend(t), spec)
			r, err := api(t).ContainerInspect(t.Context(), sb.ID(), client.ContainerInspectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for name := range r.Container.NetworkSettings.Networks {
				if name != want {
					t.Errorf("the container is on network %q, want %q", name, want)
				}
			}
			if made := inEngine(t, "proctor.trial="+trialOf(t)); len(made) != 1 {
				t.Errorf("made are %q, want a container only", made)
			}
		})
	}
}

func TestAnonymousVolumesAreRemoved(t *testing.T) {
	t.Parallel()
	dir := writeFiles(t, map[string]string{"Dockerfile": freshFrom() + "VOLUME /data\n"})
	sb := create(t, newBackend(t), buildSpec(dir))
	r, err := api(t).ContainerInspect(t.Context(), sb.ID(), client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mounts := slices.DeleteFunc(r.Container.Mounts, func(m container.MountPoint) bool { return m.Type != mount.TypeVolume })
	if len(mounts) != 1 {
		t.Fatalf("volumes: %v", mounts)
	}
	volume := mounts[0].Name
	if err := sb.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := api(t).VolumeInspect(t.Context(), volume, client.VolumeInspectOptions{}); err == nil {
		t.Errorf("volume %s is left", volume)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	sb := create(t, newBackend(t), base())
	hint, err := sb.(sandbox.Stopper).Stop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := api(t).ContainerInspect(t.Context(), sb.ID(), client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Container.State.Running || !strings.Contains(hint, strings.TrimPrefix(r.Container.Name, "/")) {
		t.Errorf("running %v, hint %q", r.Container.State.Running, hint)
	}
	if _, err := sb.Exec(t.Context(), sandbox.Command{Shell: "true"}); err == nil {
		t.Error("a stopped container runs a command")
	}
	// As the hint says, it can be started and looked into.
	if _, err := api(t).ContainerStart(t.Context(), sb.ID(), client.ContainerStartOptions{}); err != nil {
		t.Fatal(err)
	}
	engineExec(t, sb.ID(), "until grep -q '^State:[[:space:]]*S' /proc/1/status; do sleep 0.02; done")
	r, err = api(t).ContainerInspect(t.Context(), sb.ID(), client.ContainerInspectOptions{})
	if err != nil || !r.Container.State.Running {
		t.Errorf("started again it does not run on: %+v, %v", r.Container.State, err)
	}
}

// engineExec runs a command with the engine alone, as who looks into a container does.
func engineExec(t *testing.T, id, script string) {
	t.Helper()
	made, err := api(t).ExecCreate(t.Context(), id, client.ExecCreateOptions{Cmd: []string{"sh", "-c", script}, AttachStdout: true})
	if err != nil {
		t.Fatal(err)
	}
	out, err := api(t).ExecAttach(t.Context(), made.ID, client.ExecAttachOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(io.Discard, out.Reader); err != nil {
		t.Fatal(err)
	}
	st, err := api(t).ExecInspect(t.Context(), made.ID, client.ExecInspectOptions{})
	if err != nil || st.ExitCode != 0 {
		t.Errorf("%s: exit code %d, %v", script, st.ExitCode, err)
	}
}

// crashVar makes the test binary the owner of a container, to be killed.
const crashVar = "PROCTOR_TEST_DOCKER_CRASH"

func TestCollectAfterTheOwnerWasKilled(t *testing.T) {
	t.Parallel()
	if trial := os.Getenv(crashVar); trial != "" {
		spec := base()
		spec.Name, spec.Labels = trial, labels(t)
		spec.Labels.Trial = trial
		if _, err := newBackend(t).Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		fmt.Println("created")
		select {}
	}
	need.Image(t, testImage)
	trial := fmt.Sprintf("crash-%d", time.Now().UnixNano())
	owner := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	owner.Env = append(os.Environ(), crashVar+"="+trial, "TMPDIR="+t.TempDir(), guestFor(t))
	pipe, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(pipe); lines.Scan() && lines.Text() != "created"; {
	}
	if left := leftovers(t, trial); len(left) != 1 {
		t.Errorf("containers of the owner: %v", left)
	}
	b := newBackend(t)
	mine := create(t, b, base())
	alive := func(o procid.ID) bool { return o.Alive() }
	if _, err := b.Collect(t.Context(), alive); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, trial); len(left) != 1 {
		t.Errorf("the container of a living owner is gone: %v", left)
	}
	_ = owner.Process.Kill()
	_ = owner.Wait()
	// With its owner the container's supervisor ends, and everything in it.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		r, err := api(t).ContainerList(t.Context(), client.ContainerListOptions{Filters: make(client.Filters).Add("label", "proctor.trial="+trial)})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Items) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the container of a killed owner runs on")
		}
	}
	survey, err := b.Survey(t.Context(), alive)
	if err != nil {
		t.Fatal(err)
	}
	there := len(leftovers(t, trial)) > 0 // another process may collect at the same time
	if there && !strings.Contains(strings.Join(survey, "\n"), trial) {
		t.Errorf("what would be removed is %q, without %s", survey, trial)
	}
	if _, err := b.Collect(t.Context(), alive); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, trial); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	if got := output(t, mine, sandbox.Command{Shell: "echo here"}); got != "here" {
		t.Errorf("another owner's container: %q", got)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	if err := newBackend(t).Check(t.Context()); err != nil {
		t.Error(err)
	}
	missing, err := docker.New(docker.Options{Engine: "unix:///no/such/docker.sock"})
	if err != nil {
		t.Fatal(err)
	}
	if err := missing.Check(t.Context()); !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "DOCKER_HOST") {
		t.Errorf("got error %v, want ErrUnavailable and a fix", err)
	}
}
