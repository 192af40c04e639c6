package oci

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/sandbox"
)

// entrypointTests are what every runtime does with an image's entrypoint, as
// container engines do.
var entrypointTests = []struct{ name, dockerfile, look, want string }{
	{"one that carries on", `ENTRYPOINT ["sh","-c","echo yes >/ran; exec \"$@\"","sh"]`, "cat /ran", "yes"},
	{
		"a service stays beside the commands", `ENTRYPOINT ["sh","-c","echo up >/ran; while :; do sleep 1; done"]`,
		"for i in $(seq 600); do test -s /ran && break; sleep 0.1; done; cat /ran", "up",
	},
	{
		"the image's settings", "ENV FROM=image\nRUN useradd -u 4242 somebody\nWORKDIR /made\nUSER somebody\n" +
			`ENTRYPOINT ["bash","-c","echo $FROM ${OWN-unset} $PWD $(id -u) >/tmp/ran; exec \"$@\"","bash"]`,
		"cat /tmp/ran", "image unset /made 4242",
	},
	{"its command is one that waits", `ENTRYPOINT ["bash","-c","echo $1 $2 >/ran; exec \"$@\"","bash"]`, "cat /ran", "sh -c"},
	{"none", "CMD [\"false\"]", "ls /ran 2>&1 | wc -l", "1"},
}

func TestEntrypoint(t *testing.T) {
	t.Parallel()
	for _, runtime := range runtimeNames() {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, runtime)
			b := builder(t, runtime)
			for _, tt := range entrypointTests {
				t.Run(tt.name, func(t *testing.T) {
					t.Parallel()
					dir := contextDir(t, map[string]string{"Dockerfile": "FROM " + testBase + "\n" + tt.dockerfile + "\n"})
					spec, _ := buildSpec(dir)
					spec.Env = []string{"OWN=spec"}
					for range 2 { // the second time it is known
						sb := create(t, b, spec)
						if got := strings.TrimSpace(say(t, sb, tt.look)); got != tt.want {
							t.Errorf("got %q, want %q", got, tt.want)
						}
						// Neither a kill nor a time limit concerns it.
						m, err := sb.Mark(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						if err := sb.KillTree(t.Context(), m, time.Millisecond); err != nil {
							t.Fatal(err)
						}
						say(t, sb, "true")
					}
				})
			}
		})
	}
}

func TestEntrypointBeginsAgain(t *testing.T) {
	t.Parallel()
	for _, runtime := range runtimeNames() {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, runtime)
			b := builder(t, runtime)
			spec, _ := buildSpec(contextDir(t, map[string]string{
				"Dockerfile": "FROM " + testBase + "\n" + `ENTRYPOINT ["sh","-c","echo ran >>/var/ran; exec \"$@\"","sh"]` + "\n",
			}))
			sb := create(t, b, spec)
			runs := func(sb sandbox.Sandbox) string { return strings.TrimSpace(say(t, sb, "cat /var/ran")) }
			resetter, _ := sandbox.As[sandbox.Resetter](sb)
			for range 2 { // the second one takes the spare
				if err := resetter.Reset(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := runs(sb); got != "ran" {
					t.Errorf("after a reset: %q", got)
				}
			}
			forks, err := sandbox.Fork(t.Context(), sb, sandbox.Spec{Name: "fork"})
			if errors.Is(err, sandbox.ErrUnsupported) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := forks[0].Destroy(cleanupContext(t)); err != nil {
					t.Error(err)
				}
			}()
			if got := runs(forks[0]); got != "ran\nran" {
				t.Errorf("in a fork: %q", got)
			}
		})
	}
}

// TestEntrypointEndsAndBegins: EndAll ends the entrypoint without an end of the sandbox,
// however that takes it, and StartServices starts it again.
func TestEntrypointEndsAndBegins(t *testing.T) {
	t.Parallel()
	for _, runtime := range runtimeNames() {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, runtime)
			spec, _ := buildSpec(contextDir(t, map[string]string{
				"Dockerfile": "FROM " + testBase + "\n" + `ENTRYPOINT ["sh","-c","trap 'exit 0' TERM; echo ran >>/ran; while :; do sleep 0.1; done"]` + "\n",
			}))
			sb := create(t, builder(t, runtime), spec)
			restarter, _ := sandbox.As[sandbox.Restarter](sb)
			for n := 1; n <= 3; n++ {
				look := fmt.Sprintf(`for i in $(seq 600); do [ "$(wc -l </ran)" = %d ] && break; sleep 0.1; done; wc -l </ran`, n)
				if got := strings.TrimSpace(say(t, sb, look)); got != strconv.Itoa(n) {
					t.Errorf("it has run %s times, want %d", got, n)
				}
				if err := restarter.EndAll(t.Context(), time.Second); err != nil {
					t.Fatal(err)
				}
				if err := restarter.StartServices(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestEntrypointOfPrepared(t *testing.T) {
	t.Parallel()
	needRuntime(t, RuntimeNative)
	b := builder(t, RuntimeNative)
	spec, _ := buildSpec(contextDir(t, map[string]string{
		"Dockerfile": "FROM " + testBase + "\n" + `ENTRYPOINT ["sh","-c","ls /late >/ran; exec \"$@\"","sh"]` + "\n",
	}))
	if !b.lateMounts() {
		t.Skip("needs mounts in sandboxes that run")
	}
	p, err := b.Prepare(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Destroy(cleanupContext(t)) }()
	spec.Mounts = []sandbox.Mount{{Source: contextDir(t, map[string]string{"seen": ""}), Target: "/late"}}
	sb, err := p.Take(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sb.Destroy(cleanupContext(t)) }()
	if got := strings.TrimSpace(say(t, sb, "cat /ran")); got != "seen" {
		t.Errorf("the entrypoint saw %q", got)
	}
}

func TestEntrypointThatEnds(t *testing.T) {
	t.Parallel()
	for _, runtime := range runtimeNames() {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, runtime)
			b := builder(t, runtime)
			for name, entrypoint := range map[string]string{
				"at once":          `["sh","-c","echo no database; exit 3"]`,
				"with the command": `["cat"]`,
				"not there":        `["/no/such"]`,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					spec, _ := buildSpec(contextDir(t, map[string]string{"Dockerfile": "FROM " + testBase + "\nENTRYPOINT " + entrypoint + "\n"}))
					spec.Name = t.Name()
					_, err := b.Create(t.Context(), spec)
					if err == nil || !strings.Contains(err.Error(), "entrypoint has ended with exit code") || name == "at once" && !strings.Contains(err.Error(), "code 3") {
						t.Fatalf("got error %v", err)
					}
					if name == "at once" && !strings.Contains(err.Error(), "no database") {
						t.Errorf("its output is not in %v", err)
					}
				})
			}
			t.Run("later", func(t *testing.T) {
				t.Parallel()
				spec, _ := buildSpec(contextDir(t, map[string]string{"Dockerfile": "FROM " + testBase + "\n" +
					`ENTRYPOINT ["sh","-c","while ! test -e /stop; do sleep 0.1; done; echo told to; exit 0"]` + "\n"}))
				sb := create(t, b, spec)
				_, err := sb.Exec(t.Context(), sandbox.Command{Shell: "touch /stop; sleep 1000"})
				for range 2 {
					var lost *sandbox.LostError
					if !errors.As(err, &lost) || !strings.Contains(lost.Reason, "exit code 0") || !strings.Contains(lost.Reason, "told to") {
						t.Fatalf("got error %v", err)
					}
					_, err = sb.Exec(t.Context(), sandbox.Command{Shell: "true"})
				}
			})
			t.Run("killed from inside", func(t *testing.T) {
				t.Parallel()
				spec, _ := buildSpec(contextDir(t, map[string]string{"Dockerfile": "FROM " + testBase + "\n" +
					`ENTRYPOINT ["sh","-c","echo $$ >/pid; exec \"$@\"","sh"]` + "\n"}))
				sb := create(t, b, spec)
				say(t, sb, "p=$(cat /pid); kill -9 $p; while test -d /proc/$p; do sleep 0.05; done")
				say(t, sb, "true")
			})
		})
	}
}
