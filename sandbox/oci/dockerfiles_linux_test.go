package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
)

// likeDocker are Dockerfiles in the style of benchmarks, of what an engine's
// classic builder knows too. Each begins with the test image.
var likeDocker = map[string]string{
	"tree":             "COPY . /app/\n",
	"into a directory": "WORKDIR /srv\nCOPY src/a.txt src/sub sub2/\nCOPY src/*.txt ./flat/\n",
	"owners":           "RUN useradd -m -u 1234 agent\nCOPY --chown=agent:games src /home/agent/src\nUSER agent\nWORKDIR /home/agent\nRUN umask 027 && mkdir d && echo x >d/f\n",
	"relative workdir": "WORKDIR /a\nWORKDIR b\nWORKDIR ../c/d\nRUN pwd >where\nCOPY src/a.txt .\n",
	"arguments":        "ARG V=1\nARG W\nENV A=${V:+set} B=\"x $V\" C=$V$W\nRUN env | grep -E '^(A|B|C|V|W)=' | sort >/env\nARG V=2\nRUN echo $V >/v\n",
	"stages":           "RUN mkdir -p /o/bin && echo tool >/o/bin/tool && chmod 4755 /o/bin/tool && ln -s bin/tool /o/link\nFROM debian:bookworm-slim\nCOPY --from=0 /o /opt/\nCOPY --from=0 /o/link /followed\n",
	"shell":            "SHELL [\"/bin/bash\", \"-euc\"]\nRUN [[ a == a ]] && echo {1..3} >/braces\nRUN [\"/bin/sh\", \"-c\", \"echo $0 >/exec\"]\n",
	"archive":          "ADD files.tar /unpacked/\nCOPY files.tar /kept/\nADD src/a.txt /plain\n",
	"linked places":    "RUN mkdir /real && ln -s /real /alias && ln -s real /rel\nCOPY src/a.txt /alias/\nCOPY src/sub /rel/sub\nWORKDIR /alias/made\nRUN touch here\n",
	"removals":         "RUN rm -rf /etc/motd /usr/share/base-files && mkdir /etc/motd && touch /etc/motd/f\nRUN mv /etc/issue /etc/issue2 && chmod 1777 /srv && chown 5:6 /opt\n",
	"over a tree":      "COPY src /t\nCOPY over /t\nRUN chmod 600 /t/a.txt && chown 9:9 /t/sub\nCOPY src /t\n",
	"links":            "COPY links /l\nRUN ls /l >/names\n",
}

func dockerfileContext(t *testing.T, steps string) string {
	t.Helper()
	dir := contextDir(t, map[string]string{
		"Dockerfile":    "FROM debian:bookworm-slim\n" + steps + "USER root\nSHELL [\"/bin/sh\", \"-c\"]\nRUN " + listTree + "\n",
		".dockerignore": "Dockerfile\n.dockerignore\n**/*.log\n!src/keep.log\n", "src/a.txt": "a", "src/b.txt": "b", "src/run.sh!": "#!/bin/sh\n",
		"src/sub/c": "c", "src/sub/deep/d": "d", "src/no.log": "", "src/keep.log": "", "over/a.txt": "over", "over/sub/new": "new", "links/file": "f",
	})
	for name, target := range map[string]string{"links/to": "file", "links/away": "/etc/passwd", "links/none": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "files.tar"), smallArchive(t), 0o644); err != nil {
		t.Fatal(err)
	}
	// The modes of the context are not those of the umask.
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o755)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func smallArchive(t *testing.T) []byte {
	t.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: "d/", Mode: 0o750, Uid: 3, Gid: 4},
		{Typeflag: tar.TypeReg, Name: "d/f", Mode: 0o640, Uid: 3, Gid: 4},
		{Typeflag: tar.TypeSymlink, Name: "d/l", Linkname: "f", Mode: 0o777},
	} {
		if err := tw.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// listTree writes kind, mode, owner, size, name and link target of all files,
// and the digests of their content, but for what belongs to the sandbox.
const listTree = `cd / && find . -xdev \( -path ./proc -o -path ./.proctor -o -path ./sys -o -path ./dev -o -path ./.dockerenv -o -path ./listing ` +
	`-o -path ./etc/hosts -o -path ./etc/hostname -o -path ./etc/resolv.conf -o -path ./etc/mtab \) -prune ` +
	`-o \( -type f -printf '%y %m %U:%G %n %s %p\n' -o -type l -printf '%y %U:%G %p %l\n' -o -printf '%y %m %U:%G %p\n' \) | sort >listing ; ` +
	`find . -xdev \( -path ./proc -o -path ./.proctor -o -path ./sys -o -path ./dev -o -path ./listing -o -path ./.dockerenv -o -path ./etc/hosts -o -path ./etc/hostname -o -path ./etc/resolv.conf \) -prune ` +
	`-o -type f -exec sha256sum {} + | sort -k2 >>listing`

// TestLikeDocker: the same Dockerfiles give the same tree with an engine and
// without one.
func TestLikeDocker(t *testing.T) {
	t.Parallel()
	need.Root(t)
	need.Patience(t)
	needRuntime(t, RuntimeRunc)
	host := need.Image(t, testBase)
	path, ok := strings.CutPrefix(host, "unix://")
	need.That(t, "docker", ok, "needs an engine on a unix socket")
	e := &dockerEngine{&http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
	}}}
	b := builder(t, RuntimeRunc)
	for name, steps := range likeDocker {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := dockerfileContext(t, steps)
			// The engine's client, which this test has not got, leaves out what
			// is to be ignored.
			ignored := filepath.Join(dir, "src", "no.log")
			if err := os.Remove(ignored); err != nil {
				t.Fatal(err)
			}
			want := e.listing(t, dir)
			if err := os.WriteFile(ignored, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			spec, _ := buildSpec(dir)
			s := create(t, b, spec)
			var out bytes.Buffer
			if _, err := s.Exec(t.Context(), sandbox.Command{Argv: []string{"cat", "/listing"}, Stdout: &out}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(differing(want, out.String()), differing(out.String(), want)); diff != "" {
				t.Errorf("tree (-engine +proctor):\n%s", diff)
			}
		})
	}
}

// differing are the lines of a that b has not got.
func differing(a, b string) []string {
	has := map[string]bool{}
	for line := range strings.Lines(b) {
		has[line] = true
	}
	return slices.DeleteFunc(slices.Collect(strings.Lines(a)), func(line string) bool { return has[line] })
}

type dockerEngine struct{ client *http.Client }

func (e *dockerEngine) do(t *testing.T, method, path string, body io.Reader, contentType string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, "http://engine"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	res, err := e.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if res.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s: %s: %s", method, path, res.Status, data)
	}
	return data
}

// listing builds a context with the engine and reads the listing in the image.
func (e *dockerEngine) listing(t *testing.T, dir string) string {
	t.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	if err := errors.Join(tw.AddFS(os.DirFS(dir)), tw.Close()); err != nil {
		t.Fatal(err)
	}
	const options = "version=1&rm=1&forcerm=1&nocache=1&networkmode=none"
	log := e.do(t, http.MethodPost, "/build?"+options, &buf, "application/x-tar")
	id := ""
	for lines := json.NewDecoder(bytes.NewReader(log)); lines.More(); {
		var line struct {
			Error string
			Aux   struct{ ID string }
		}
		if err := lines.Decode(&line); err != nil || line.Error != "" {
			t.Fatalf("the engine's build: %v %s\n%s", err, line.Error, log)
		}
		if line.Aux.ID != "" {
			id = line.Aux.ID
		}
	}
	defer e.do(t, http.MethodDelete, "/images/"+id+"?force=1", nil, "")
	var made struct{ ID string }
	if err := json.Unmarshal(e.do(t, http.MethodPost, "/containers/create", strings.NewReader(fmt.Sprintf(`{"Image":%q,"Cmd":["true"]}`, id)), "application/json"), &made); err != nil {
		t.Fatal(err)
	}
	defer e.do(t, http.MethodDelete, "/containers/"+made.ID+"?force=1", nil, "")
	tr := tar.NewReader(bytes.NewReader(e.do(t, http.MethodGet, "/containers/"+made.ID+"/archive?path=/listing", nil, "")))
	if _, err := tr.Next(); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(tr)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
