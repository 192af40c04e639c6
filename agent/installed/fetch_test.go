package installed_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// member is a file of an archive.
type member struct {
	name string
	text string
	kind byte // of tar; 0 for a file
	mode int64
}

func archive(t testing.TB, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	w := tar.NewWriter(packed)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Typeflag: m.kind, Mode: m.mode, Size: int64(len(m.text))}
		if m.kind == tar.TypeSymlink || m.kind == tar.TypeLink {
			h.Linkname, h.Size = m.text, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte(m.text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func integrity(data []byte) string {
	sum := sha512.Sum512(data)
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// registry is one of npm's, with a Node and an npm.
type registry struct {
	node, npm []byte
	// answer, when set, answers in the place of the registry, if it says so.
	answer func(w http.ResponseWriter, r *http.Request) bool
	asked  atomic.Int64
}

func newRegistry(t testing.TB) (*registry, *httptest.Server) {
	t.Helper()
	g := &registry{
		node: archive(t, member{"node/", "", tar.TypeDir, 0o755}, member{"node/bin/node", "NODE", 0, 0o755}, member{"node/share/doc", "no", 0, 0o644}),
		npm:  archive(t, member{"package/bin/npm-cli.js", "NPM", 0, 0o600}),
	}
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	return g, s
}

func (g *registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.asked.Add(1)
	if g.answer != nil && g.answer(w, r) {
		return
	}
	data := g.npm
	if strings.HasPrefix(r.URL.Path, "/node-linux-") || r.URL.Path == "/files/node" {
		data = g.node
	}
	switch r.URL.Path {
	case "/files/node", "/files/npm":
		_, _ = w.Write(data)
		return
	case "/npm/11.21.2", nodePath:
		name := strings.Split(r.URL.Path, "/")[1]
		name, _, _ = strings.Cut(name, "-")
		_, _ = fmt.Fprintf(w, `{"dist": {"tarball": "http://%s/files/%s", "integrity": %q}}`, r.Host, name, integrity(data))
		return
	}
	http.NotFound(w, r)
}

var nodePath = "/node-linux-" + strings.NewReplacer("amd64", "x64").Replace(runtime.GOARCH) + "/22.0.0"

// installing installs a package of npm with a registry.
func installing(t testing.TB, address, downloads string, rules ...fake.Rule) (*desk, error) {
	t.Helper()
	desk := newDesk(t, rules...)
	desk.env.Downloads = downloads
	lookup := func(name string) (string, bool) { return address + "/", name == "npm_config_registry" }
	e := parse(t, "[model]\nrequired = false\n[install]\nnode = '22.0.0'\nnpm = ['mine@{{.Version}}']\n", "output =", "version = '1.2'\noutput =").Entry()
	in, err := e.Install(agent.Config{Name: "mine", Lookup: lookup})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(in.Hosts, []string{"127.0.0.1"}) {
		t.Errorf("it reaches %q", in.Hosts)
	}
	_, err = in.Install(t.Context(), desk.env)
	return desk, err
}

// TestInstallPackages: Node and npm come from this machine, and are fetched once.
func TestInstallPackages(t *testing.T) {
	t.Parallel()
	g, s := newRegistry(t)
	downloads := filepath.Join(t.TempDir(), "downloads")
	var argv, env []string
	work := fake.On("npm-cli.js", func(_ context.Context, p *fake.Process) (int, error) {
		argv, env = p.Command.Argv, p.Command.Env
		for name, want := range map[string]string{knownPrefix + "/node/bin/node": "NODE", "/installed-agent/.work/npm/bin/npm-cli.js": "NPM"} {
			if data, err := p.Sandbox.ReadFile(name); err != nil || string(data) != want {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		}
		if _, err := p.Sandbox.ReadFile(knownPrefix + "/node/share/doc"); err == nil {
			t.Error("more of Node than its program is there")
		}
		return 0, nil
	})
	for range 2 {
		if _, err := installing(t, s.URL, downloads, work); err != nil {
			t.Fatal(err)
		}
	}
	if len(argv) < 5 || argv[0] != "bash" || !slices.Equal(argv[4:], []string{"mine@1.2"}) || !slices.Contains(env, "npm_config_registry="+s.URL) {
		t.Errorf("ran %q with %q", argv, env)
	}
	if n := g.asked.Load(); n != 4 {
		t.Errorf("the registry was asked %d times", n)
	}
	if entries, err := os.ReadDir(downloads); err != nil || len(entries) != 2 {
		t.Errorf("kept %v, %v", entries, err)
	}
}

// TestInstallPackagesKeepsNothing: without a directory for it nothing is kept, and nothing
// is taken from a place where others could have put it.
func TestInstallPackagesKeepsNothing(t *testing.T) {
	g, s := newRegistry(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	planted := filepath.Join(temp, "proctor-downloads")
	if err := os.Mkdir(planted, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{strings.Trim(strings.ReplaceAll(nodePath, "/", "-"), "-"), "npm-11.21.2"} {
		if err := os.WriteFile(filepath.Join(planted, name+".tgz"), archive(t, member{"x/bin/node", "EVIL", 0, 0o755}), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		desk, err := installing(t, s.URL, "")
		if err != nil {
			t.Fatal(err)
		}
		if data, err := desk.sb.ReadFile(knownPrefix + "/node/bin/node"); err != nil || string(data) != "NODE" {
			t.Errorf("Node is %q, %v", data, err)
		}
	}
	if n := g.asked.Load(); n != 8 {
		t.Errorf("the registry was asked %d times", n)
	}
	if entries, err := os.ReadDir(temp); err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "proctor-downloads-") }) {
		t.Errorf("left %v, %v", entries, err)
	}
}

// TestRegistryFaults: a registry that lies, fails or floods is an error of the installation
// that names the package, and nothing of it is kept or run.
func TestRegistryFaults(t *testing.T) {
	t.Parallel()
	answer := func(path, text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == path {
				_, _ = io.WriteString(w, strings.ReplaceAll(text, "HOST", r.Host))
			}
			return r.URL.Path == path
		}
	}
	huge := strings.Repeat(" ", 9<<20)
	other := integrity([]byte("another"))
	for name, c := range map[string]struct {
		change func(g *registry)
		want   string
	}{
		"not there": {func(g *registry) {
			g.answer = func(w http.ResponseWriter, r *http.Request) bool { http.NotFound(w, r); return true }
		}, "answers 404"},
		"no JSON":        {func(g *registry) { g.answer = answer(nodePath, "<html>") }, "asking for package node-linux-"},
		"no address":     {func(g *registry) { g.answer = answer(nodePath, "{}") }, "the registry does not tell where it is"},
		"another scheme": {func(g *registry) { g.answer = answer(nodePath, `{"dist": {"tarball": "file:///etc/passwd"}}`) }, "unsupported protocol scheme"},
		"no hash":        {func(g *registry) { g.answer = answer(nodePath, `{"dist": {"tarball": "http://HOST/files/node"}}`) }, "the registry tells no SHA-512 of it"},
		"a weak hash": {func(g *registry) {
			g.answer = answer(nodePath, `{"dist": {"tarball": "http://HOST/files/node", "integrity": "sha1-x"}}`)
		}, "the registry tells no SHA-512 of it"},
		"another hash": {func(g *registry) {
			g.answer = answer(nodePath, `{"dist": {"tarball": "http://HOST/files/node", "integrity": "sha1-x `+other+`"}}`)
		}, "its hash is not the one that the registry tells"},
		"a long answer": {func(g *registry) { g.answer = answer(nodePath, huge) }, "asking for package node-linux-"},
		"going round": {func(g *registry) {
			g.answer = func(w http.ResponseWriter, r *http.Request) bool {
				http.Redirect(w, r, r.URL.Path, http.StatusFound)
				return true
			}
		}, "redirects"},
		"no archive":      {func(g *registry) { g.node = []byte("no gzip") }, "uploading node-linux-"},
		"a cut archive":   {func(g *registry) { g.node = g.node[:len(g.node)/2] }, "uploading node-linux-"},
		"another archive": {func(g *registry) { g.node = g.npm }, "the archive has no bin/node"},
		"an empty one":    {func(g *registry) { g.npm = archive(t) }, "the archive has no files"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, s := newRegistry(t)
			c.change(g)
			downloads := t.TempDir()
			desk, err := installing(t, s.URL, downloads)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if len(desk.ran) > 0 {
				t.Errorf("ran %q", desk.shells())
			}
			if strings.Contains(c.want, "SHA-512") || strings.Contains(c.want, "hash") {
				if entries, err := os.ReadDir(downloads); err != nil || len(entries) > 0 {
					t.Errorf("kept %v, %v", entries, err)
				}
			}
		})
	}
}

// TestHostileArchive: of an archive only files below its directory are unpacked, and
// nothing outside the one where they belong.
func TestHostileArchive(t *testing.T) {
	t.Parallel()
	g, s := newRegistry(t)
	g.npm = archive(t, member{"p/good", "1", 0, 0o4777}, member{"p/../../../up", "2", 0, 0o644}, member{"a/../../../etc/deep", "3", 0, 0o644},
		member{"/abs", "4", 0, 0o644}, member{"p/link", "/etc", tar.TypeSymlink, 0o777}, member{"p/hard", "/etc/passwd", tar.TypeLink, 0o777},
		member{"p/pipe", "", tar.TypeFifo, 0o666}, member{"top", "5", 0, 0o644})
	desk, err := installing(t, s.URL, t.TempDir(), fake.On("rm -rf", fake.Exit(0)))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	root := desk.sb.Path("/")
	err = filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(root, path)
			found = append(found, filepath.ToSlash(name))
		}
		return err
	})
	want := []string{"installed-agent/.work/npm/abs", "installed-agent/.work/npm/good", "installed-agent/mine/node/bin/node", "proctor/agent.sh"}
	found = slices.DeleteFunc(found, func(n string) bool { return strings.HasSuffix(n, "ca.crt") })
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("there is %q, %v", found, err)
	}
}
