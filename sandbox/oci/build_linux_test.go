package oci

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	ocilayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/internal/programtest"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// testBase is what the mirror of builder calls the test root file system.
const testBase = "debian:bookworm-slim"

// builder returns a backend whose store has a mirror with the test root file
// system.
func builder(t testing.TB, runtime string) *Backend {
	t.Helper()
	need.Rootfs(t)
	mirror, err := sharedMirror()
	if err != nil {
		t.Fatal(err)
	}
	opts := testOptions(t, runtime)
	store, err := image.Open(filepath.Join(opts.StateDir, "images"), image.Options{Offline: true, Mirrors: []string{mirror}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	opts.OwnRoot, opts.Images = false, store
	return newBackend(t, opts)
}

// sharedMirror is the mirror of builder.
var sharedMirror = sync.OnceValues(func() (string, error) {
	dir, err := testsDir()
	if err != nil {
		return "", err
	}
	layer, err := rootfsLayer()
	if err != nil {
		return "", err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return "", err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return "", err
	}
	file.Config.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
	if img, err = mutate.ConfigFile(img, file); err != nil {
		return "", err
	}
	mirror := filepath.Join(dir, "mirror")
	path, err := ocilayout.Write(mirror, empty.Index)
	if err != nil {
		return "", err
	}
	ref := map[string]string{"org.opencontainers.image.ref.name": name.MustParseReference(testBase).String()}
	return mirror, path.AppendImage(img, ocilayout.WithAnnotations(ref), ocilayout.WithPlatform(v1.Platform{OS: "linux"}))
})

// contextDir writes a build context. Names that end in ! are executable.
func contextDir(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		mode := os.FileMode(0o644)
		if strings.HasSuffix(name, "!") {
			mode = 0o755
		}
		path := filepath.Join(dir, strings.TrimSuffix(name, "!"))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// buildSpec also returns what was said of steps being run.
func buildSpec(dir string) (sandbox.Spec, *[]string) {
	var steps []string
	return sandbox.Spec{
		Image: sandbox.Image{Build: &sandbox.Build{ContextDir: dir, Name: "task"}},
		Progress: func(m string) {
			if strings.Contains(m, ": step ") {
				steps = append(steps, m)
			}
		},
	}, &steps
}

const wholeDockerfile = `ARG TAG=bookworm-slim
FROM debian:${TAG} AS tools
RUN mkdir /out && printf '#!/bin/sh\necho tool\n' >/out/tool && chmod 755 /out/tool && ln -s tool /out/alias && chown 7:8 /out/tool
FROM tools AS unused
RUN exit 1
FROM debian:bookworm-slim
ARG WHO=world
ENV GREETING="hello $WHO"
WORKDIR /app
COPY . .
COPY --from=tools --chmod=0700 /out /usr/local/bin/
COPY --chown=www-data:games data/*.txt /data/
RUN echo "$GREETING from $PWD as $(id -un)" >greeting && rm /etc/motd /etc/issue.net && mkdir /etc/motd && touch /etc/motd/new
SHELL ["/bin/bash", "-c"]
RUN [[ $BASH_VERSION ]] && echo bash >>greeting
RUN ["/bin/sh", "-c", "echo exec >>greeting"]
RUN <<EOF
echo one >>greeting
echo two >>greeting
EOF
RUN <<EOF
#!/bin/cat
a program
EOF
COPY <<EOF /conf/file
WHO is $WHO
EOF
RUN --mount=type=cache,target=/var/deep/cache --mount=type=bind,source=data,target=/src test -e /src/a.txt && echo x >/var/deep/cache/x
RUN --network=none ! (exec 3<>/dev/tcp/127.0.0.1/22) 2>/dev/null
RUN useradd -m agent && echo mine >/home/agent/file && chown -R agent /home/agent && chmod 600 /home/agent/file
USER agent
WORKDIR /home/agent/work
RUN id -un >who
`

func TestBuild(t *testing.T) {
	t.Parallel()
	need.Root(t)
	for _, runtime := range runtimeNames() {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, runtime)
			b := builder(t, runtime)
			files := map[string]string{
				"Dockerfile": wholeDockerfile, ".dockerignore": "*.log\nDockerfile\n", "data/a.txt": "a", "data/b.txt": "b", "data/c.bin": "c",
				"run.sh!": "#!/bin/sh\n", "x.log": "no",
			}
			spec, steps := buildSpec(contextDir(t, files))
			s := create(t, b, spec)
			got := say(t, s, `
				echo "$PWD $(id -un) $GREETING"; cat who
				cd /app && cat greeting && ls -A && stat -c '%a %U:%G' run.sh . greeting
				stat -c '%n %a %u:%g %s' /usr/local/bin/tool /usr/local/bin/alias
				stat -c '%n %U:%G' /data /data/*
				cat /conf/file; ls /etc/motd; ls /etc/issue.net 2>&1
				stat -c '%U %a' /home/agent/work /home/agent/file
				ls -d /var/deep /src 2>&1; ls -A / | tr '\n' ' '`)
			want := `/home/agent/work agent hello world
agent
hello world from /app as root
bash
exec
one
two
.dockerignore
data
greeting
run.sh
755 root:root
755 root:root
644 root:root
/usr/local/bin/tool 700 7:8 20
/usr/local/bin/alias 777 0:0 4
/data www-data:games
/data/a.txt www-data:games
/data/b.txt www-data:games
WHO is world
new
ls: cannot access '/etc/issue.net': No such file or directory
agent 755
agent 600
ls: cannot access '/var/deep': No such file or directory
ls: cannot access '/src': No such file or directory
`
			if have, ok := strings.CutPrefix(got, want); !ok {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			} else if strings.Contains(have, "out") {
				t.Errorf("files of another stage are there: %s", have)
			}
			if len(*steps) != 16 {
				t.Errorf("%d steps were run: %q", len(*steps), *steps)
			}
			*steps = nil
			create(t, b, spec)
			if len(*steps) != 0 {
				t.Errorf("the second build runs steps: %q", *steps)
			}
			assertNothingElse(t, b, 2)
		})
	}
}

// assertNothingElse holds that there are so many sandboxes: those of steps are
// gone.
func assertNothingElse(t testing.TB, b *Backend, sandboxes int) {
	t.Helper()
	left, err := os.ReadDir(filepath.Join(b.opts.StateDir, sandboxesDir))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != sandboxes {
		t.Errorf("%d sandboxes are there, want %d", len(left), sandboxes)
	}
}

// TestBuildFromScratch: with every runtime an image has of /dev, /proc and /sys what its
// steps put there.
func TestBuildFromScratch(t *testing.T) {
	t.Parallel()
	need.Root(t)
	const dockerfile = `FROM debian:bookworm-slim AS tools
RUN mkdir /o && cp --parents /bin/sh $(ldd /bin/sh | grep -o '/[^ ]*') /o
FROM scratch AS bare
COPY --from=tools /o /
RUN echo x >/made
FROM bare AS filled
COPY a /dev/sub/
ADD root.tar /
RUN echo y >>/made
FROM debian:bookworm-slim
COPY a /proc/a
RUN touch /tmp/ran
COPY a /tmp/a
RUN touch /tmp/last
COPY --from=bare / /bare
COPY --from=filled / /filled
RUN rm -r /bare/lib* /bare/bin /filled/lib* /filled/bin && find /bare /filled -printf '%m %p\n' | sort >/found
RUN --mount=from=filled,target=/m ls -A /m/dev >>/found ; cat /filled/made >>/found ; ls -A /tmp >>/found ; stat -c %a /tmp >>/found
`
	const want = `640 /filled/dev/f
640 /filled/dev/h
644 /bare/made
644 /filled/dev/sub/a
644 /filled/made
644 /filled/usr/f
555 /filled/proc
555 /filled/sys
750 /filled/dev
755 /bare
755 /filled
755 /filled/dev/sub
755 /filled/usr
`
	for _, runtime := range runtimeNames() {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, runtime)
			b := builder(t, runtime)
			dir := contextDir(t, map[string]string{"Dockerfile": dockerfile, "a": "a", "root.tar": string(rootArchive(t))})
			spec, _ := buildSpec(dir)
			lines := strings.SplitAfter(want, "\n")
			slices.Sort(lines)
			if got, want := say(t, create(t, b, spec), "cat /found"), strings.Join(lines, "")+"f\nh\nsub\nx\ny\na\nlast\nran\n1777\n"; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestBuildOfUser is also run by users other than root, whose layers belong to
// them alone.
func TestBuildOfUser(t *testing.T) {
	t.Parallel()
	for _, runtime := range []string{RuntimeRunc, RuntimeGVisor} {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, runtime)
			b := builder(t, runtime)
			spec, _ := buildSpec(contextDir(t, map[string]string{"data": "x", "root.tar": string(rootArchive(t)), "Dockerfile": `FROM debian:bookworm-slim AS one
RUN mkdir -m 700 /closed && echo secret >/closed/file && chmod 400 /closed/file && rm -r /etc/apt && rm /etc/debian_version
FROM scratch AS bare
ADD root.tar /
FROM one
COPY --from=bare / /bare
COPY --chown=7:8 data /etc/apt/
COPY --from=one /closed /open
WORKDIR /app
`}))
			got := say(t, create(t, b, spec), "pwd; cat /closed/file /open/file; ls /etc/apt; ls /etc/debian_version 2>/dev/null; stat -c %a /closed /closed/file /bare/proc; ls /bare")
			if want := "/app\nsecret\nsecret\ndata\n700\n400\n555\ndev\nproc\nsys\nusr\n"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			spec, _ = buildSpec(contextDir(t, map[string]string{"Dockerfile": "FROM debian:bookworm-slim\nRUN echo no; exit 1\n"}))
			_, err := b.Create(t.Context(), spec)
			if failed, ok := errors.AsType[*sandbox.BuildError](err); !ok || strings.Contains(failed.Err.Error(), "without root") == b.root {
				t.Errorf("a failing build: %v", err)
			}
		})
	}
}

func TestBuildOfOrdinaryUser(t *testing.T) {
	t.Parallel()
	need.Root(t)
	program := programtest.ForAll(t, staticProgram(t))
	data, err := os.ReadFile(need.Rootfs(t))
	if err != nil {
		t.Fatal(err)
	}
	rootfs := filepath.Join(filepath.Dir(program), "rootfs.tar")
	if err := errors.Join(os.WriteFile(rootfs, data, 0o644), os.Chmod(rootfs, 0o644)); err != nil {
		t.Fatal(err)
	}
	const nobodyElse = 54322
	cmd := exec.Command(program, "-test.run=^TestBuildOfUser$", "-test.v")
	cmd.Dir, cmd.Env = "/", append(os.Environ(), need.RootfsVar+"="+rootfs)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyElse, Gid: nobodyElse}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	t.Logf("%d tests passed, %d skipped", strings.Count(string(out), "--- PASS"), strings.Count(string(out), "--- SKIP"))
}

func TestBuildReuse(t *testing.T) {
	t.Parallel()
	need.Root(t)
	needRuntime(t, RuntimeRunc)
	b := builder(t, RuntimeRunc)
	files := map[string]string{
		"Dockerfile": "FROM debian:bookworm-slim\nRUN date +%N >/first\nCOPY a /\nRUN cat /a >/last\n", "a": "1", "other": "1",
	}
	dir := contextDir(t, files)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := func(force bool) (said string, steps int) {
		t.Helper()
		spec, list := buildSpec(dir)
		spec.Image.ForceBuild = force
		out := say(t, create(t, b, spec), "cat /first /last")
		return out, len(*list)
	}
	first, steps := build(false)
	if steps != 3 {
		t.Errorf("%d steps at first", steps)
	}
	write("other", "2")
	if again, steps := build(false); again != first || steps != 0 {
		t.Errorf("when nothing that matters changes: %q, then %q after %d steps", first, again, steps)
	}
	write("a", "2")
	stamp, _, _ := strings.Cut(first, "\n")
	if again, steps := build(false); again != stamp+"\n2" || steps != 2 {
		t.Errorf("when a file changes: %q, then %q after %d steps", first, again, steps)
	}
	if again, steps := build(true); strings.HasPrefix(again, stamp) || steps != 3 {
		t.Errorf("when forced: %q, then %q after %d steps", first, again, steps)
	}
}

func TestBuildErrors(t *testing.T) { //nolint:tparallel // one after the other: each looks for what it left
	t.Parallel()
	need.Root(t)
	needRuntime(t, RuntimeRunc)
	b := builder(t, RuntimeRunc)
	tests := []struct {
		name, dockerfile string
		want             string // in the error
		log              string
		is               error
	}{
		{"failing RUN", "FROM debian:bookworm-slim\n\nRUN echo out; echo err >&2; exit 3\n", "line 3 of the Dockerfile: RUN echo out", "out\nerr\n", nil},
		{"missing program", "FROM debian:bookworm-slim\nRUN [\"/nothing\"]\n", "line 2 of the Dockerfile", "", nil},
		{"unknown user", "FROM debian:bookworm-slim\nUSER nobodyhere\nRUN true\n", "line 3 of the Dockerfile", "", nil},
		{"missing file", "FROM debian:bookworm-slim\nCOPY nothing /\n", `line 2 of the Dockerfile: COPY nothing /: "nothing"`, "", os.ErrNotExist},
		{"missing image", "FROM nothing:here\n", "line 1 of the Dockerfile", "", sandbox.ErrImageNotFound},
		{"URL", "FROM debian:bookworm-slim\nRUN exit 1\nADD https://example.org/x /\n", "line 3 of the Dockerfile: ADD https://example.org/x /", "", sandbox.ErrUnsupported},
		{"syntax", "FROM debian:bookworm-slim\nRUNN x\n", "line 2 of the Dockerfile: unknown instruction: RUNN", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec, _ := buildSpec(contextDir(t, map[string]string{"Dockerfile": tt.dockerfile}))
			_, err := b.Create(t.Context(), spec)
			failed, ok := errors.AsType[*sandbox.BuildError](err)
			if !ok {
				t.Fatalf("got %v, want a BuildError", err)
			}
			if !strings.Contains(failed.Err.Error(), tt.want) || failed.Image != "task" {
				t.Errorf("got %q of image %q, want %q", failed.Err, failed.Image, tt.want)
			}
			if tt.log != "" && failed.Log != tt.log {
				t.Errorf("log %q, want %q", failed.Log, tt.log)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%v is not %v", err, tt.is)
			}
			assertNothingElse(t, b, 0)
		})
	}
}

func TestBuildEnds(t *testing.T) {
	t.Parallel()
	need.Root(t)
	needRuntime(t, RuntimeRunc)
	b := builder(t, RuntimeRunc)
	spec, _ := buildSpec(contextDir(t, map[string]string{"Dockerfile": "FROM debian:bookworm-slim\nRUN sleep 1000\n"}))
	spec.Image.Build.Timeout = 2 * time.Second
	_, err := b.Create(t.Context(), spec)
	if _, ok := errors.AsType[*sandbox.BuildError](err); !ok || !strings.Contains(err.Error(), "time is up: 2s") {
		t.Errorf("at its time limit: %v", err)
	}
	spec.Image.Build.Timeout = 0
	ctx, cancel := context.WithCancelCause(t.Context())
	mine := errors.New("stopped by the test")
	spec.Progress = func(m string) {
		if strings.Contains(m, "RUN sleep") {
			cancel(mine)
		}
	}
	if _, err := b.Create(ctx, spec); !errors.Is(err, mine) {
		t.Errorf("when its context ends: %v", err)
	}
	// Closing the store waits for the end of the work.
	if err := b.opts.Images.Close(); err != nil {
		t.Error(err)
	}
	assertNothingElse(t, b, 0)
}

// TestCacheMount: what a build leaves in a cache the next one of the same directory finds,
// by its id or its target, and one of another directory does not.
func TestCacheMount(t *testing.T) {
	t.Parallel()
	b := builder(t, RuntimeRunc)
	saw := func(dir, n string) string {
		if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM debian:bookworm-slim\n"+
			"RUN --mount=type=cache,target=/c --mount=type=cache,id=x,target=/d,mode=0700,uid=7,sharing=locked --mount=type=cache,id=x,target=/e,sharing=locked "+
			"echo "+n+" >>/c/n && echo "+n+" >/d/n && stat -c '%a %u' /d >/stat && cat /c/n >/seen && cmp /d/n /e/n\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		spec, _ := buildSpec(dir)
		sb := create(t, b, spec)
		var out strings.Builder
		status, err := sb.Exec(t.Context(), sandbox.Command{Argv: []string{"sh", "-c", "cat /seen /stat; ls -A /c /d /e"}, Stdout: &out})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "\nn\n") {
			t.Errorf("status %v, a cache is in the image: %q", status, out.String())
		}
		return out.String()
	}
	dir := contextDir(t, nil)
	saw(dir, "1")
	if got, want := saw(dir, "2"), "1\n2\n700 7\n"; !strings.HasPrefix(got, want) {
		t.Errorf("the second build saw %q, want %q", got, want)
	}
	if got, want := saw(contextDir(t, nil), "3"), "3\n700 7\n"; !strings.HasPrefix(got, want) {
		t.Errorf("a build of another directory saw %q, want %q", got, want)
	}
}
