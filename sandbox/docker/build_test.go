package docker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/image"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
)

// api is the engine, past the backend under test.
func api(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.New(client.WithHost(need.Docker(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// writeFiles makes a directory with the files.
func writeFiles(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// freshFrom begins a Dockerfile whose steps no other test has, in this run or in
// another: an engine that removes the last name of an image may remove one that is
// being made of the same steps.
func freshFrom() string {
	return fmt.Sprintf("FROM %s\nLABEL run=%s test=%d\n", testImage, thisRun, time.Now().UnixNano())
}

// removeBuilt removes what the tests of this run have built, when all have ended:
// of tests that run at once one may be about to use what another has used.
func removeBuilt() {
	c, err := client.New(client.FromEnv)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	list, err := c.ImageList(ctx, client.ImageListOptions{Filters: make(client.Filters).Add("label", "run="+thisRun)})
	if err != nil {
		return // there is no engine
	}
	for _, item := range list.Items {
		for _, tag := range item.RepoTags {
			_, _ = c.ImageRemove(ctx, tag, client.ImageRemoveOptions{PruneChildren: true})
		}
	}
}

// create makes a sandbox that ends with the test.
func create(t testing.TB, b sandbox.Backend, spec sandbox.Spec) sandbox.Sandbox {
	t.Helper()
	spec.Name, spec.Labels = t.Name(), labels(t)
	sb, err := b.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := sb.Destroy(ctx); err != nil {
			t.Error(err)
		}
	})
	return sb
}

// output of a command that has to exit with 0.
func output(t testing.TB, sb sandbox.Sandbox, cmd sandbox.Command) string {
	t.Helper()
	var out strings.Builder
	cmd.Stdout = &out
	st, err := sb.Exec(t.Context(), cmd)
	if err != nil || st.Code != 0 {
		t.Fatalf("exec %q: %+v, %v, output %q", cmd.Shell, st, err, out.String())
	}
	return strings.TrimSpace(out.String())
}

// buildSpec builds dir.
func buildSpec(dir string) sandbox.Spec {
	return sandbox.Spec{Image: sandbox.Image{Build: &sandbox.Build{ContextDir: dir, Name: "task"}}}
}

// imageOf is what a sandbox's container was made of.
func imageOf(t testing.TB, sb sandbox.Sandbox) (ref, id string) {
	t.Helper()
	r, err := api(t).ContainerInspect(t.Context(), sb.ID(), client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Container.Config.Image, r.Container.Image
}

func TestBuildIsReusedByContent(t *testing.T) { //nolint:tparallel // the last looks for what the others leave
	t.Parallel()
	b := newBackend(t)
	unique := t.Name() + time.Now().String()
	files := map[string]string{
		"Dockerfile":    freshFrom() + "WORKDIR /app\nCOPY . .\nRUN head -c 16 /dev/urandom | od -An -tx1 >/built\n",
		"unique":        unique,
		"data/kept.txt": "kept",
		"data/left.tmp": "left",
		".dockerignore": "# a comment\n**/*.tmp\n",
	}
	first := create(t, b, buildSpec(writeFiles(t, files)))
	ref, id := imageOf(t, first)
	if got := output(t, first, sandbox.Command{Shell: "pwd; ls -A data; cat data/kept.txt"}); got != "/app\nkept.txt\nkept" {
		t.Errorf("the build's files: %q", got)
	}

	t.Run("the same content elsewhere", func(t *testing.T) {
		sb := create(t, newBackend(t), buildSpec(writeFiles(t, files)))
		if gotRef, gotID := imageOf(t, sb); gotRef != ref || gotID != id {
			t.Errorf("got image %s %s, want %s %s", gotRef, gotID, ref, id)
		}
	})
	t.Run("what is ignored does not count", func(t *testing.T) {
		files := clone(files)
		files["data/other.tmp"] = "other"
		sb := create(t, b, buildSpec(writeFiles(t, files)))
		if gotRef, _ := imageOf(t, sb); gotRef != ref {
			t.Errorf("got image %s, want %s", gotRef, ref)
		}
	})
	t.Run("a changed file counts", func(t *testing.T) {
		files := clone(files)
		files["data/kept.txt"] = "changed"
		sb := create(t, b, buildSpec(writeFiles(t, files)))
		if gotRef, _ := imageOf(t, sb); gotRef == ref {
			t.Error("got the image of the unchanged context")
		}
		if got := output(t, sb, sandbox.Command{Shell: "cat data/kept.txt"}); got != "changed" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a changed mode counts", func(t *testing.T) {
		dir := writeFiles(t, files)
		if err := os.Chmod(filepath.Join(dir, "data/kept.txt"), 0o755); err != nil {
			t.Fatal(err)
		}
		if gotRef, _ := imageOf(t, create(t, b, buildSpec(dir))); gotRef == ref {
			t.Error("got the image of the unchanged context")
		}
	})
	t.Run("it is there after its sandboxes", func(t *testing.T) {
		if err := first.Destroy(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := api(t).ImageInspect(t.Context(), ref); err != nil {
			t.Error(err)
		}
	})
}

func clone(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

func TestBuildsAtTheSameTimeAreOne(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	dir := writeFiles(t, map[string]string{
		"Dockerfile": freshFrom() + "RUN sleep 1; head -c 16 /dev/urandom | od -An -tx1 >/built\n",
	})
	var mu sync.Mutex
	builds := 0
	ids := make(map[string]int)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			spec := buildSpec(dir)
			spec.Progress = func(m string) {
				if m == "building task" {
					mu.Lock()
					builds++
					mu.Unlock()
				}
			}
			sb := create(t, b, spec)
			_, id := imageOf(t, sb)
			mu.Lock()
			ids[id]++
			mu.Unlock()
		})
	}
	wg.Wait()
	if builds != 1 || len(ids) != 1 {
		t.Errorf("%d builds and %d images, want one of each", builds, len(ids))
	}
}

func TestReferenceOrBuild(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	dir := writeFiles(t, map[string]string{"Dockerfile": freshFrom() + "RUN echo built >/built\n"})
	for _, tt := range []struct {
		name  string
		image sandbox.Image
		built bool
	}{
		{"no reference", sandbox.Image{Build: &sandbox.Build{ContextDir: dir, Name: "task"}}, true},
		{"reference and Dockerfile", sandbox.Image{Ref: testImage, Build: &sandbox.Build{ContextDir: dir, Name: "task"}}, false},
		{"forced", sandbox.Image{Ref: testImage, Build: &sandbox.Build{ContextDir: dir, Name: "task"}, ForceBuild: true}, true},
		{"forced without a Dockerfile", sandbox.Image{Ref: testImage, ForceBuild: true}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sb := create(t, b, sandbox.Spec{Image: tt.image})
			got := output(t, sb, sandbox.Command{Shell: "cat /built || true"})
			if (got == "built") != tt.built {
				t.Errorf("got %q, want a built image: %v", got, tt.built)
			}
		})
	}
}

func TestBuildErrors(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	for _, tt := range []struct {
		name, dockerfile string
		timeout          time.Duration
		want             string // in the message
	}{
		{name: "a step that fails", dockerfile: "FROM " + testImage + "\nRUN echo the-reason; exit 7\n", want: "the-reason"},
		{name: "a step that fails under BuildKit", dockerfile: "FROM " + testImage + "\nRUN --mount=type=tmpfs,target=/scratch echo the-reason; exit 7\n", want: "the-reason"},
		{name: "a broken Dockerfile", dockerfile: "FORM " + testImage + "\n", want: "FORM"},
		{name: "an empty Dockerfile", dockerfile: "", want: "task"},
		{name: "time is up", dockerfile: "FROM " + testImage + "\nRUN sleep 300\n", timeout: time.Second, want: "time is up: 1s"},
		{name: "much output", dockerfile: "FROM " + testImage + "\nRUN seq 100000; exit 3\n", want: "\n100000\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			spec := buildSpec(writeFiles(t, map[string]string{"Dockerfile": tt.dockerfile}))
			spec.Image.Build.Timeout = tt.timeout
			sb, err := b.Create(t.Context(), spec)
			if sb != nil {
				t.Fatal("got a sandbox")
			}
			var be *sandbox.BuildError
			if !errors.As(err, &be) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got error %v, want a BuildError that says %q", err, tt.want)
			}
			if len(be.Log) > 9<<10 {
				t.Errorf("the log has %d bytes", len(be.Log))
			}
		})
	}
}

func TestBuildWithBuildKit(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	dir := writeFiles(t, map[string]string{"Dockerfile": "ARG TAG=12\nFROM debian:${TAG} AS base\nRUN --mount=type=tmpfs,target=/scratch echo kit >/built\nFROM base\nCOPY --from=base /built /copied\nLABEL run=" + thisRun + "\n# " + time.Now().String() + "\n"})
	sb := create(t, b, buildSpec(dir))
	if got := output(t, sb, sandbox.Command{Shell: "cat /copied"}); got != "kit" {
		t.Errorf("got %q", got)
	}
}

func TestNoDockerfile(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	var be *sandbox.BuildError
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing")} {
		if _, err := b.Create(t.Context(), buildSpec(dir)); !errors.As(err, &be) {
			t.Errorf("got error %v, want a BuildError", err)
		}
	}
}

func TestUnknownImage(t *testing.T) {
	t.Parallel()
	// The reserved name never resolves: no registry is asked.
	_, err := newBackend(t).Create(t.Context(), sandbox.Spec{Name: "x", Image: sandbox.Image{Ref: "registry.invalid/no/such:image"}})
	if err == nil || !strings.Contains(err.Error(), `"registry.invalid/no/such:image"`) {
		t.Errorf("got error %v, want one that names the image", err)
	}
}

func TestCollectImages(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	keepAll := func(procid.ID) bool { return true }
	// No other run of this test makes the same images: an engine that removes the
	// last name of one may remove one that is being made of the same steps.
	file := "FROM " + testImage + "\nLABEL run=" + thisRun + " kept="
	plain := buildSpec(writeFiles(t, map[string]string{"Dockerfile": file + "no\n"}))
	kept := buildSpec(writeFiles(t, map[string]string{"Dockerfile": file + "yes\n"}))
	kept.Image.KeepImage = true
	refs := make([]string, 2)
	for i, spec := range []sandbox.Spec{plain, kept} {
		sb := create(t, b, spec)
		refs[i], _ = imageOf(t, sb)
		if err := sb.Destroy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	keepTag := strings.Replace(refs[1], "proctor-build:", "proctor-keep:", 1)
	c := api(t)
	t.Cleanup(func() { _, _ = c.ImageRemove(context.Background(), keepTag, client.ImageRemoveOptions{Force: true}) })

	if _, err := b.Collect(t.Context(), keepAll); err != nil {
		t.Fatal(err)
	}
	for _, ref := range refs {
		if _, err := c.ImageInspect(t.Context(), ref); err != nil {
			t.Errorf("an image that was just used is gone: %v", err)
		}
	}
	later, err := docker.New(docker.Options{
		Engine: onlyImages(t, need.Docker(t), refs...), AllowRemote: true,
		Now: func() time.Time { return time.Now().Add(30 * 24 * time.Hour) },
	})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := later.Collect(t.Context(), keepAll)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(lines, "\n"), "image "+refs[0]) {
		t.Errorf("Collect removed %q, want %s among it", lines, refs[0])
	}
	if _, err := c.ImageInspect(t.Context(), refs[0]); err == nil {
		t.Error("the unused image is still there")
	}
	if _, err := c.ImageInspect(t.Context(), refs[1]); err != nil {
		t.Errorf("the image that was to be kept is gone: %v", err)
	}
}

// onlyImages is the address of an engine like that at host, except that its list
// of images has none but those named: a test that collects images leaves those of
// others alone.
func onlyImages(t testing.TB, host string, refs ...string) string {
	t.Helper()
	engine, err := client.ParseHostURL(host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	proxy.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, engine.Scheme, engine.Host)
	}}
	proxy.ModifyResponse = func(r *http.Response) error {
		if !strings.HasSuffix(r.Request.URL.Path, "/images/json") || r.StatusCode != http.StatusOK {
			return nil
		}
		var all []image.Summary
		if err := errors.Join(json.NewDecoder(r.Body).Decode(&all), r.Body.Close()); err != nil {
			return err
		}
		others := func(i image.Summary) bool {
			return !slices.ContainsFunc(i.RepoTags, func(tag string) bool { return slices.Contains(refs, tag) })
		}
		text, err := json.Marshal(slices.DeleteFunc(all, others))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		r.Header.Set("Content-Length", strconv.Itoa(len(text)))
		return err
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return "tcp://" + server.Listener.Addr().String()
}
