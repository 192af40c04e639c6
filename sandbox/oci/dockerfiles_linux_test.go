package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
)

// likeDocker are Dockerfiles in the style of benchmarks, of what an engine's
// classic builder knows too. Each begins with the test image, unless its first
// line is a comment: then it says itself with what.
var likeDocker = map[string]string{
	"tree":             "COPY . /app/\n",
	"into a directory": "WORKDIR /srv\nCOPY src/a.txt src/sub sub2/\nCOPY src/*.txt ./flat/\n",
	"owners":           "RUN useradd -m -u 1234 agent\nCOPY --chown=agent:games src /home/agent/src\nUSER agent\nWORKDIR /home/agent\nRUN umask 027 && mkdir d && echo x >d/f\n",
	"relative workdir": "WORKDIR /a\nWORKDIR b\nWORKDIR ../c/d\nRUN pwd >where\nCOPY src/a.txt .\n",
	"arguments":        "ARG V=1\nARG W\nENV A=${V:+set} B=\"x $V\" C=$V$W\nRUN env | grep -E '^(A|B|C|V|W)=' | sort >/env\nARG V=2\nRUN echo $V >/v\n",
	"stages":           "RUN mkdir -p /o/bin && echo tool >/o/bin/tool && chmod 4755 /o/bin/tool && ln -s bin/tool /o/link\n" + from + "COPY --from=0 /o /opt/\nCOPY --from=0 /o/link /followed\n",
	"shell":            "SHELL [\"/bin/bash\", \"-euc\"]\nRUN [[ a == a ]] && echo {1..3} >/braces\nRUN [\"/bin/sh\", \"-c\", \"echo $0 >/exec\"]\n",
	"archive":          "ADD files.tar /unpacked/\nCOPY files.tar /kept/\nADD src/a.txt /plain\n",
	"linked places":    "RUN mkdir /real && ln -s /real /alias && ln -s real /rel\nCOPY src/a.txt /alias/\nCOPY src/sub /rel/sub\nWORKDIR /alias/made\nRUN touch here\n",
	"removals":         "RUN rm -rf /etc/motd /usr/share/base-files && mkdir /etc/motd && touch /etc/motd/f\nRUN mv /etc/issue /etc/issue2 && chmod 1777 /srv && chown 5:6 /opt\n",
	"over a tree":      "COPY src /t\nCOPY over /t\nRUN chmod 600 /t/a.txt && chown 9:9 /t/sub\nCOPY src /t\n",
	"links":            "COPY links /l\nRUN ls /l >/names\n",

	"users": "RUN groupadd -g 2000 crew && useradd -u 2001 -g crew -G games -m worker\n" +
		"USER worker\nRUN " + whoami + "\nUSER 2001\nRUN " + whoami + "\nUSER 2001:50\nRUN " + whoami + "\nUSER worker:staff\nRUN " + whoami + "\nUSER 4321\nRUN " + whoami + "\n",
	"package":             "RUN " + installPackage + "\nRUN tool >/said && stat -c %U /var/lib/tool >>/said\n",
	"package removed":     "RUN " + installPackage + "\nRUN dpkg --purge tool && rm /var/log/dpkg.log\n",
	"stage on a stage":    "# three\nFROM debian:bookworm-slim AS base\nENV A=1\nRUN mkdir /b && echo base >/b/f\nWORKDIR /b\nFROM base AS mid\nRUN echo $A >>f && touch mid\nFROM base\nCOPY --from=mid /b /m\nRUN rm f && pwd >where\n",
	"scratch":             "# files alone\nFROM scratch AS files\nCOPY src /src\nCOPY --chown=3:4 src/a.txt /x/y/\nWORKDIR /w\n" + from + "COPY --from=files / /t\n",
	"scratch and an own":  "# its own /dev\nFROM scratch\nCOPY dev /dev\nCOPY src/a.txt /sys/\n" + from + "COPY --from=0 / /t\n",
	"scratch of archive":  "# a root file system\nFROM scratch\nADD root.tar /\n" + from + "COPY --from=0 / /t\n",
	"scratch and a shell": "RUN mkdir /o && cp --parents /bin/sh $(ldd /bin/sh | grep -o '/[^ ]*') /o\nFROM scratch\nCOPY --from=0 /o /\nRUN echo x >/made\nWORKDIR /w\nRUN echo y >made\n" + from + "COPY --from=1 / /t\n",
	"owners of a stage":   "RUN " + ownedTree + "\n" + from + "COPY --from=0 /o /kept\nCOPY --from=0 --chown=7:8 /o /given\nCOPY --from=0 /o/d/f /o/e/ /both/\n",
	"image":               "COPY --from=debian:bookworm-slim /etc/passwd /etc/skel /p/\n",
	"hard links":          "RUN mkdir /h && cd /h && echo x >a && ln a b && ln a /h2\nRUN echo y >>/h/a\n" + from + "COPY --from=0 /h /t\nCOPY --from=0 /h/a /h/b /one/\nCOPY --from=0 /h /h2 /both/\n",
	"sparse":              "RUN truncate -s 3M /sparse && echo end >>/sparse\n" + from + "COPY --from=0 /sparse /s/\n",
	"set-group-id":        "RUN " + groupDir + "\nCOPY src /g/\nCOPY --chown=7:8 src/sub /g/sub2/\nRUN mkdir /g/made && touch /g/made/f\n",
	"archive and owner":   "RUN mkdir /n /z\nADD --chown=7:8 files.tar /n/\nADD --chown=games files.tar.gz /z/\nADD --chown=7:8 src/a.txt src/b.txt /plain/\n",
	"names with spaces":   "COPY [\"with space/a b.txt\", \"/to here/\"]\nCOPY [\"with space\", \"/all of it\"]\nRUN [\"touch\", \"/to here/c d\"]\n",
	"wildcards":           "COPY src/?.txt src/[rs]*h /w/\nCOPY s*c/sub/d* /deep/\nCOPY [a-z]*/a.txt /one/\n",
	"escape":              "# escape=`\n" + from + "RUN echo a `\n  b\\c >/e\nCOPY src/a.txt `\n  /f\n",
	"continuations":       "RUN echo a \\\n# not this\n  b >/c \\\n\n  && echo c >>/c\n   # nor this\nCOPY src/a.txt \\\n  /d/\n",
	"scopes":              "# before all\nARG TAG=bookworm-slim G=global\nFROM debian:${TAG} AS a\nARG G\nENV E=$G\nRUN echo \"$TAG $G $E\" >/a\nFROM debian:${TAG}\nARG E=arg\nRUN echo \"$TAG $G $E\" >/b\nENV E=env\nRUN echo $E >>/b\nCOPY --from=a /a /$E\n",
	"exec forms":          "ENV V=v\nRUN [\"/bin/sh\", \"-c\", \"echo $V >/one\"]\nRUN [\"touch\", \"/$V\", \"/two\"]\nCMD [\"x\"]\nRUN echo three >/three\n",
	"ignored for a tree":  "EXPOSE 80\nLABEL a=b\nMAINTAINER me\nSTOPSIGNAL 9\nHEALTHCHECK CMD true\nONBUILD RUN touch /never\nRUN touch /once\n",
	"made again":          "COPY src /t\nRUN rm -rf /t && mkdir /t && touch /t/only\nRUN rm -r /t && echo file >/t\nRUN rm /t\nCOPY src/sub /t\n",
	"modes":               "RUN umask 077 && mkdir -p /m/d && touch /m/f && chmod 6711 /m/f && chmod 3770 /m/d\nCOPY src /m/\nRUN chmod 500 /m && chgrp games /m/d\nCOPY src/a.txt /m/d/\n",
	"below /tmp":          "RUN mkdir -m 2770 /tmp/w && chown games:60 /tmp/w && mkdir /tmp/w/d\nCOPY src /tmp/w/d/\nADD files.tar /tmp/x/\nWORKDIR /tmp/w\nRUN touch f\n",
	"two trees":           "RUN mkdir -p /a/s /b/s && chmod 700 /a/s && chmod 711 /b/s && chown 3:4 /a/s\n" + from + "COPY --from=0 /a /b /t/\n",
	"special files":       "RUN mkfifo -m 600 /pipe && mkdir /s && mkfifo /s/p && ln -s /pipe /s/l\n",
}

// likeBuildKit are Dockerfiles of what only the engine's newer builder knows,
// or does as the reference says.
var likeBuildKit = map[string]string{
	"modes":            "COPY --chmod=640 src/a.txt src/b.txt /c/\nCOPY --chmod=755 src/sub /d\nADD --chmod=600 src/a.txt /e\n",
	"cache":            "RUN mkdir /c\nRUN " + mountCache + " rm -rf /c/* && echo x >/c/f\nRUN " + mountCache + " cp /c/f /got\nRUN ls /c >/left\n",
	"cache of a user":  "RUN mkdir /c\nUSER games\nRUN --mount=type=cache,id=proctor-games,target=/c,uid=5,gid=60,mode=0750 stat -c '%a %u:%g' /c >/tmp/is && touch /c/f\n",
	"bind":             "RUN mkdir /b\nRUN --mount=target=/b,source=src cp -r /b /got && ! touch /b/x\nRUN --mount=type=bind,target=/b,source=src,rw touch /b/x && ls /b >/names\n",
	"bind of a stage":  "# a tree\nFROM debian:bookworm-slim AS tree\nRUN " + ownedTree + "\n" + from + "RUN mkdir /b\nRUN --mount=from=tree,source=/o,target=/b cp -a /b /got\n",
	"memory":           "RUN mkdir /t && echo under >/t/f\nRUN --mount=type=tmpfs,target=/t touch /t/g && ls /t >/names\n",
	"set-group-id":     "RUN " + groupDir + "\nCOPY src/a.txt /g/n/m/\nCOPY src /g/src\nCOPY --chown=7:8 src/a.txt /g/o/p/\nWORKDIR /g/w/x\nRUN touch f\nUSER games\nWORKDIR /g/u/y\n",
	"archive":          "ADD --chown=7:8 files.tar /n/m/\nADD files.tar.gz /z/\n",
	"workdir of users": "RUN useradd -m -u 1234 agent\nUSER agent\nWORKDIR /made/here\nRUN touch f\nUSER 77\nWORKDIR /made/there/below\n",
	"hard links":       "# a tree\nFROM debian:bookworm-slim AS tree\nRUN mkdir /h && cd /h && echo x >a && ln a b\n" + from + "COPY --from=tree /h /t\nCOPY --from=tree /h/a /h/b /one/\nRUN mkdir /b\nRUN --mount=from=tree,source=/h,target=/b cp -a /b /got\n",
	"volume":           "RUN mkdir /v && touch /v/a\nVOLUME /v\nRUN touch /v/b\nCOPY src/a.txt /v/c\n",
	"stages":           "# the third is not needed\nFROM debian:bookworm-slim AS one\nRUN " + ownedTree + "\nFROM scratch AS two\nCOPY --from=one /o /o\nCOPY src/a.txt /dev/a\nFROM one\nRUN exit 1\n" + from + "COPY --from=two / /t\n",
}

const from = "FROM debian:bookworm-slim\n"

// whoami notes for whom and in which home a command runs.
const whoami = `echo "$(id -u):$(id -g) $(id -G) $HOME $(pwd)" >>/tmp/who-$(id -u)-$(id -g)`

// groupDir makes a directory that gives what is in it its group.
const groupDir = "mkdir /g && chgrp 60 /g && chmod 2775 /g"

// ownedTree makes a tree of owners, modes and links.
const ownedTree = "mkdir -p /o/d /o/e && cd /o && echo f >d/f && ln -s d/f l && ln -s /etc al && touch e/g && " +
	"chmod 640 d/f && chmod 1750 e && chown -h 3:4 l d && chown 5:60 e/g d/f"

const mountCache = "--mount=type=cache,id=proctor-test,target=/c"

// installPackage makes a package with a program, a configuration file and a
// user, and installs it. Its log has the time in it.
const installPackage = `mkdir -p /p/DEBIAN /p/usr/bin /p/etc /p/var/lib/tool && cd /p && ` +
	`printf 'Package: tool\nVersion: 1\nArchitecture: all\nMaintainer: me\nDescription: tool\n' >DEBIAN/control && ` +
	`printf '/etc/tool.conf\n' >DEBIAN/conffiles && echo conf >etc/tool.conf && ` +
	`printf '#!/bin/sh\nuseradd -r -d /var/lib/tool tool\nchown tool: /var/lib/tool\n' >DEBIAN/postinst && ` +
	`printf '#!/bin/sh\necho tool\n' >usr/bin/tool && chmod 755 DEBIAN/postinst usr/bin/tool && ` +
	`dpkg-deb --build /p /p.deb && dpkg -i /p.deb && cd / && rm -r /p /p.deb /var/log/dpkg.log`

// likeDocuments are Dockerfiles with here-documents, which the engine is not
// sure to know, and what it builds in their place.
var likeDocuments = map[string][2]string{
	"run":     {"RUN <<E\nset -e\necho one >/f\ncd /tmp\npwd >>/f\nE\n", "RUN echo one >/f && cd /tmp && pwd >>/f\n"},
	"program": {"RUN <<E\n#!/usr/bin/perl\nopen F, '>', '/f'; print F 1 + 1;\nE\n", "RUN printf 2 >/f\n"},
	"input":   {"ENV V=v\nRUN cat <<A >/a && cat <<'B' >/b\n$V\nA\n$V\nB\n", "RUN echo v >/a && echo '$V' >/b\n"},
	"files":   {"ARG V=v\nCOPY --chown=7:8 <<a.txt <<\"B\" /d/\na $V\na.txt\n$V\nB\nCOPY <<-E /e\n\tt\nE\n", "RUN mkdir /d && echo a v >/d/a.txt && echo '$V' >/d/B && chown -R 7:8 /d && echo t >/e\n"},
}

// ignoredFiles are those of a context that its .dockerignore leaves out, as the
// engine's client does, which the test has not got.
var ignoredFiles = []string{"src/no.log", "left/out", "left/deep/out", "left/deep/also.log"}

// dockerfileContext writes a context, all but its ignored files.
func dockerfileContext(t *testing.T, steps string) string {
	t.Helper()
	text := steps
	if !strings.HasPrefix(steps, "#") {
		text = from + steps
	}
	dir := contextDir(t, map[string]string{
		"Dockerfile":    text + "USER root\nSHELL [\"/bin/sh\", \"-c\"]\nRUN " + listTree + "\n",
		".dockerignore": "Dockerfile\n.dockerignore\n# logs\n**/*.log\n!src/keep.log\nleft/*\n!left/kept\n", "left/kept": "k",
		"src/a.txt": "a", "src/b.txt": "b", "src/run.sh!": "#!/bin/sh\n", "src/sub/c": "c", "src/sub/deep/d": "d", "src/keep.log": "",
		"over/a.txt": "over", "over/sub/new": "new", "links/file": "f", "with space/a b.txt": "s", "dev/b": "b",
	})
	for name, target := range map[string]string{"links/to": "file", "links/away": "/etc/passwd", "links/none": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range map[string][]byte{"files.tar": smallArchive(t), "files.tar.gz": gzipped(t, smallArchive(t)), "root.tar": rootArchive(t)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
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

func addIgnored(t *testing.T, dir string) {
	t.Helper()
	for _, name := range ignoredFiles {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// smallArchive has owners, a link and another name of a file, and a file whose
// directory it does not have.
func smallArchive(t *testing.T) []byte {
	t.Helper()
	return archiveOf(t,
		tar.Header{Typeflag: tar.TypeDir, Name: "d/", Mode: 0o750, Uid: 3, Gid: 4},
		tar.Header{Typeflag: tar.TypeReg, Name: "d/f", Mode: 0o4750, Uid: 3, Gid: 4},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "d/l", Linkname: "f", Mode: 0o777, Uid: 5, Gid: 6},
		tar.Header{Typeflag: tar.TypeLink, Name: "h", Linkname: "d/f", Mode: 0o4750, Uid: 3, Gid: 4},
		tar.Header{Typeflag: tar.TypeReg, Name: "no/entry/f", Mode: 0o600, Uid: 3, Gid: 4},
	)
}

// rootArchive has the directories that a sandbox mounts.
func rootArchive(t *testing.T) []byte {
	t.Helper()
	return archiveOf(t,
		tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeDir, Name: "./dev/", Mode: 0o750, Uid: 3, Gid: 4},
		tar.Header{Typeflag: tar.TypeReg, Name: "./dev/f", Mode: 0o640},
		tar.Header{Typeflag: tar.TypeLink, Name: "./dev/h", Linkname: "./dev/f", Mode: 0o640},
		tar.Header{Typeflag: tar.TypeDir, Name: "./proc/", Mode: 0o555},
		tar.Header{Typeflag: tar.TypeDir, Name: "./sys/", Mode: 0o555},
		tar.Header{Typeflag: tar.TypeDir, Name: "./usr/", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeReg, Name: "./usr/f", Mode: 0o644},
	)
}

func archiveOf(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for i := range headers {
		if err := tw.WriteHeader(&headers[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	_, err := z.Write(data)
	if err := errors.Join(err, z.Close()); err != nil {
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
		t.Run(name, func(t *testing.T) { compareTrees(t, b, steps, e, classic, steps) })
	}
	for name, steps := range likeBuildKit {
		t.Run("buildkit "+name, func(t *testing.T) { compareTrees(t, b, steps, e, buildKit, steps) })
	}
	for name, steps := range likeDocuments {
		t.Run("document "+name, func(t *testing.T) { compareTrees(t, b, steps[0], e, classic, steps[1]) })
	}
}

// compareTrees builds steps with a backend and an engine's with one of its builders.
func compareTrees(t *testing.T, b *Backend, steps string, e *dockerEngine, version int, engines string) {
	t.Parallel()
	want := e.listing(t, dockerfileContext(t, engines), version)
	dir := dockerfileContext(t, steps)
	addIgnored(t, dir)
	spec, _ := buildSpec(dir)
	s := create(t, b, spec)
	var out bytes.Buffer
	if _, err := s.Exec(t.Context(), sandbox.Command{Argv: []string{"cat", "/listing"}, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(differing(want, out.String()), differing(out.String(), want)); diff != "" {
		t.Errorf("tree (-engine +proctor):\n%s", diff)
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
	status, data := e.ask(t, method, path, body, contentType)
	if status >= http.StatusBadRequest {
		t.Fatalf("%s %s: %d: %s", method, path, status, data)
	}
	return data
}

// removeUnnamed removes an image that has no name, where it is still there and no other
// image rests on it.
func (e *dockerEngine) removeUnnamed(t *testing.T, id string) {
	t.Helper()
	status, data := e.ask(t, http.MethodGet, "/images/"+id+"/json", nil, "")
	var image struct{ RepoTags []string }
	if status != http.StatusOK || json.Unmarshal(data, &image) != nil || len(image.RepoTags) > 0 {
		return
	}
	if status, data := e.ask(t, http.MethodDelete, "/images/"+id, nil, ""); status >= http.StatusInternalServerError {
		t.Errorf("removing %s: %s", id, data)
	}
}

func (e *dockerEngine) ask(t *testing.T, method, path string, body io.Reader, contentType string) (status int, answer []byte) {
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
	return res.StatusCode, data
}

// The builders of an engine, by the numbers of its API.
const (
	classic  = 1
	buildKit = 2
)

// listing builds a context with one of the engine's builders and reads the listing in
// the image.
func (e *dockerEngine) listing(t *testing.T, dir string, version int) string {
	t.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	if err := errors.Join(tw.AddFS(os.DirFS(dir)), tw.Close()); err != nil {
		t.Fatal(err)
	}
	options := fmt.Sprintf("version=%d&rm=1&forcerm=1&nocache=1&networkmode=none", version)
	id, stages := builtImage(t, e.do(t, http.MethodPost, "/build?"+options, &buf, "application/x-tar"))
	defer func() {
		e.do(t, http.MethodDelete, "/images/"+id+"?force=1", nil, "")
		for _, stage := range slices.Backward(stages) {
			e.removeUnnamed(t, stage)
		}
	}()
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

// ofStep is how the classic builder says which image a step made, or began with.
var ofStep = regexp.MustCompile(`^ ---> ([0-9a-f]{12})\n$`)

// builtImage finds in what an engine said of a build which image it made, and which images
// it has of the steps.
func builtImage(t *testing.T, log []byte) (id string, steps []string) {
	t.Helper()
	for lines := json.NewDecoder(bytes.NewReader(log)); lines.More(); {
		var line struct {
			Error, Stream string
			Aux           json.RawMessage // BuildKit's progress is a string
		}
		if err := lines.Decode(&line); err != nil || line.Error != "" {
			t.Fatalf("the engine's build: %v %s\n%s", err, line.Error, log)
		}
		if m := ofStep.FindStringSubmatch(line.Stream); m != nil {
			steps = append(steps, m[1])
		}
		var made struct{ ID string }
		if json.Unmarshal(line.Aux, &made) == nil && made.ID != "" {
			id = made.ID
		}
	}
	return id, steps
}
