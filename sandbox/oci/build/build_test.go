package build

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// lines are what the commands of a build were, one a line.
func (b *bench) lines() string {
	var out strings.Builder
	for _, c := range b.commands {
		fmt.Fprintf(&out, "%q in %s as %q\n", c.Argv, c.Dir, c.User)
	}
	return out.String()
}

func TestRun(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, dockerfile, want string
	}{
		{"shell form", "RUN a  b \\\n  c", `["/bin/sh" "-c" "a  b   c"] in / as ""`},
		{"variables are the shell's", "ARG A=1\nRUN echo $A '$B'", `["/bin/sh" "-c" "echo $A '$B'"] in / as ""`},
		{"exec form", `RUN ["a", "$B"]`, `["a" "$B"] in / as ""`},
		{"SHELL", `SHELL ["/bin/bash", "-ec"]` + "\nRUN x", `["/bin/bash" "-ec" "x"] in / as ""`},
		{"SHELL and exec form", `SHELL ["/bin/bash", "-ec"]` + "\nRUN [\"x\"]", `["x"] in / as ""`},
		{"directory and user", "ENV D=/a\nWORKDIR $D\nWORKDIR b/../c\nUSER agent:${G:-staff}\nRUN x", `["/bin/sh" "-c" "x"] in /a/c as "agent:staff"`},
		{"document", "RUN <<E\n one\ntwo\nE", `["/bin/sh" "-c" " one\ntwo\n"] in / as ""`},
		{"document without tabs", "RUN <<-E\n\tone\nE", `["/bin/sh" "-c" "one\n"] in / as ""`},
		{"documents of the shell", "RUN cat <<A <<B >x\n1\nA\n2\nB", `["/bin/sh" "-c" "cat <<A <<B >x\n1\nA\n2\nB"] in / as ""`},
		{"document with an interpreter", "RUN <<E\n#!/bin/cat\nx\nE", `["/bin/sh" "-c" "/dev/pipes/E"] in / as ""`},
		{"a name that is no file name", "RUN <<'a/../b'\n#!/bin/cat\nx\na/../b", `["/bin/sh" "-c" "/dev/pipes/script"] in / as ""`},
		{"escape", "# escape=`\nFROM debian\nRUN a `\n  b\\c", `["/bin/sh" "-c" "a   b\\c"] in / as ""`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			text := tt.dockerfile
			if !strings.Contains(text, "FROM") {
				text = "FROM debian\n" + text
			}
			if _, err := b.do(text, nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want+"\n", b.lines()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.addImage("tagged:2-linux", image.Config{Env: []string{"FROM_IMAGE=1"}, User: "7", Workdir: "/w", Cmd: []string{"sh"}}, map[string]string{"w/": ""})
	img, err := b.do(`ARG V=2 TAG=${V}-$TARGETOS
ARG GLOBAL=global HIDDEN=hidden
FROM tagged:${TAG} AS first
ARG GLOBAL LOCAL=local UNSET
ENV A=1 B=$A C="x ${LOCAL}"
ENV A=2 D=${A}-${HIDDEN:-none}-$GLOBAL E='$A' F=\$A
RUN first
FROM FIRST
ENV G=$LOCAL
LABEL l=$A
ENTRYPOINT run $A
RUN second
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"FROM_IMAGE=1", "PATH=" + defaultPath, "GLOBAL=global", "LOCAL=local", "A=2", "B=", "C=x local", "D=1-none-global", "E=$A", "F=$A"}
	if diff := cmp.Diff(env, b.commands[0].Env); diff != "" {
		t.Errorf("first RUN (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(append(env, "G=local"), b.commands[1].Env); diff != "" {
		t.Errorf("second RUN (-want +got):\n%s", diff)
	}
	want := image.Config{
		Env: []string{"FROM_IMAGE=1", "A=2", "B=", "C=x local", "D=1-none-global", "E=$A", "F=$A", "G=local"}, User: "7", Workdir: "/w",
		Entrypoint: []string{"/bin/sh", "-c", "run $A"}, Cmd: []string{}, Labels: map[string]string{"l": "2"},
	}
	if diff := cmp.Diff(want, img.Config); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	img, err := b.do(`FROM debian
MAINTAINER me
EXPOSE 80
VOLUME /v
STOPSIGNAL 9
HEALTHCHECK CMD x
ONBUILD RUN y
USER agent
CMD ["a", "b"]
ENTRYPOINT ["c"]
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := image.Config{Env: []string{"PATH=/bin", "BASE=yes"}, User: "agent", Cmd: []string{"a", "b"}, Entrypoint: []string{"c"}, Labels: map[string]string{}}
	if diff := cmp.Diff(want, img.Config); diff != "" || len(b.steps) != 0 {
		t.Errorf("%d steps; settings (-want +got):\n%s", len(b.steps), diff)
	}
}

func TestStages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.addImage("tools:1", image.Config{}, map[string]string{"t": "tool"})
	b.exec = func(root string, cmd sandbox.Command) (int, error) {
		return 0, os.WriteFile(filepath.Join(root, "made"), []byte(cmd.Argv[2]), 0o644)
	}
	img, err := b.do(`FROM debian AS a
RUN in-a
FROM scratch AS unused
RUN never
FROM missing:image
FROM a AS b
RUN in-b
FROM scratch
COPY --from=b /made /b/
COPY --from=0 made /a
COPY --from=tools:1 /t /
RUN --mount=type=bind,from=A,source=/made,target=/m last
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := b.lines(), "in-a in-b last"; strings.Count(got, "\n") != 3 || strings.Contains(got, "never") {
		t.Errorf("commands\n%s, want %s", got, want)
	}
	want := []string{"b/ 755 0:0", "b/made 644 - in-b", "a 644 - in-a", "t 644 - tool"}
	if diff := cmp.Diff(want, anyOwner(b.placed)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/m true in-a"}, b.mounts); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	if len(img.Layers) != 4 {
		t.Errorf("%d layers", len(img.Layers))
	}
}

// anyOwner hides the owners of files that tests make as whoever runs them.
func anyOwner(placed []string) []string {
	own := fmt.Sprintf(" %d:%d ", os.Geteuid(), os.Getegid())
	var out []string
	for _, p := range placed {
		out = append(out, strings.Replace(p, own, " - ", 1))
	}
	return out
}

func TestErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, dockerfile, want string
		is                     error
	}{
		{"empty", "", "no instructions", nil},
		{"comment alone", "# nothing\n", "no instructions", nil},
		{"no FROM", "ENV A=1\n", "line 1 ", nil},
		{"ARG alone", "ARG A=1\n", "no FROM", nil},
		{"unknown instruction", "FROM debian\n\nNONSENSE x\n", "line 3 of the Dockerfile: unknown instruction: NONSENSE", nil},
		{"unknown flag", "FROM debian\nCOPY --nonsense a b\n", "line 2 ", nil},
		{"unknown image", "FROM debian AS x\nFROM y\n", "line 2 ", sandbox.ErrImageNotFound},
		{"unknown image of COPY", "FROM debian\nCOPY --from=y a b\n", "line 2 ", sandbox.ErrImageNotFound},
		{"unset image", "FROM ${NOTHING}\n", "line 1 of the Dockerfile: FROM ${NOTHING}: no image is named", nil},
		{"required variable", "FROM debian\nENV A=\"${B:?is needed}\"\n", "is needed", nil},
		{"later stage", "FROM debian\nCOPY --from=b a b\nFROM debian AS b\nCOPY --from=0 x y", `line 2 of the Dockerfile: COPY --from=b a b: stage "b" is not complete`, nil},
		{"own stage", "FROM debian AS a\nCOPY --from=a a b\n", "not complete", nil},
		{"no such stage", "FROM debian\nCOPY --from=3 a b\n", "there is no stage 3", nil},
		{"platform", "FROM --platform=windows/amd64 debian\n", "line 1 ", sandbox.ErrUnsupported},
		{"ADD of a URL", "FROM debian\nADD https://x.org/y /\n", "line 2 of the Dockerfile: ADD https://x.org/y /: fetching", sandbox.ErrUnsupported},
		{"ADD of a URL in a variable", "FROM debian\nARG U=https://x.org\nADD $U/y /\n", "line 3 of the Dockerfile: ADD $U/y /: fetching", sandbox.ErrUnsupported},
		{"ADD of a repository", "FROM debian\nADD git@x.org:y.git /\n", "fetching", sandbox.ErrUnsupported},
		{"COPY of a URL", "FROM debian\nCOPY https://x.org/y /\n", "only ADD", nil},
		{"parents", "FROM debian\nCOPY --parents x /\n", "--parents", sandbox.ErrUnsupported},
		{"symbolic mode", "FROM debian\nCOPY --chmod=u+x Dockerfile /\n", "--chmod=u+x", sandbox.ErrUnsupported},
		{"unknown owner", "FROM debian\nCOPY --chown=who Dockerfile /\n", `--chown=who: user "who"`, nil},
		{"unknown group", "FROM debian\nCOPY --chown=agent:who Dockerfile /\n", `group "who"`, nil},
		{"secret", "FROM debian\nRUN --mount=type=secret,id=x,required=true y\n", "line 2 ", sandbox.ErrUnsupported},
		{"mount without a target", "FROM debian\nRUN --mount=type=cache y\n", "needs a target", nil},
		{"insecure", "FROM debian\nRUN --security=insecure y\n", "--security", sandbox.ErrUnsupported},
		{"ONBUILD below", "FROM debian AS a\nONBUILD RUN x\nFROM a\n", "ONBUILD instruction (line 2)", sandbox.ErrUnsupported},
		{"missing source", "FROM debian\nCOPY x y\n", `line 2 of the Dockerfile: COPY x y: "x": file does not exist in the build context`, os.ErrNotExist},
		{"directory over a file", "FROM debian\nCOPY d /file\n", "not a directory", nil},
		{"file as a directory", "FROM debian\nCOPY Dockerfile /file/\n", "not a directory", nil},
		{"file over a directory", "FROM debian\nCOPY e /\n", `"/dir" in the image is a directory`, nil},
		{"directory over a link", "FROM debian\nCOPY l /\n", `"/bin" in the image is not a directory`, nil},
		{"several sources", "FROM debian\nCOPY Dockerfile d /x\n", "end with /", nil},
		{"working directory", "FROM debian\nWORKDIR /file\n", "not a directory", nil},
		{"expansion", "FROM debian\nENV A=0123456789abcdef" + strings.Repeat("\nENV A=$A$A$A$A$A$A$A$A", 30), "expand to too much", nil},
		{"instructions", "FROM debian\n" + strings.Repeat("USER x\n", maxInstructions), "at most 5000", nil},
		{"bad pattern", "FROM debian\nCOPY [ /\n", "syntax error in pattern", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			_, err := b.do(tt.dockerfile, map[string]string{"d/x": "", "e/dir": "", "l/bin/x": ""})
			failed, ok := errors.AsType[*sandbox.BuildError](err)
			if !ok || failed.Image != "task" {
				t.Fatalf("got %v, want a BuildError of the image", err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant …%s…", err, tt.want)
			}
			if errors.Is(tt.is, sandbox.ErrUnsupported) && !strings.Contains(err.Error(), "use -e docker") {
				t.Errorf("%v does not tell what to do", err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%v is not %v", err, tt.is)
			}
			if len(b.commands)+len(b.placed) > 0 {
				t.Error("something was done before")
			}
		})
	}
}

func TestFailingRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.exec = func(_ string, cmd sandbox.Command) (int, error) {
		for range 1000 {
			_, _ = fmt.Fprintln(cmd.Stdout, "some line of output\xff")
		}
		_, _ = fmt.Fprintln(cmd.Stdout, "the end")
		return 3, nil
	}
	_, err := b.do("FROM debian\nRUN <<E\nx\nE", nil)
	failed, ok := errors.AsType[*sandbox.BuildError](err)
	if !ok || failed.Err.Error() != "line 2 of the Dockerfile: RUN <<E: exit status 3" {
		t.Fatalf("got %v", err)
	}
	if len(failed.Log) > logTail+2000 || !strings.HasSuffix(failed.Log, "the end\n") || !strings.Contains(failed.Log, "cut here") || strings.Contains(failed.Log, "\xff") {
		t.Errorf("log of %d bytes: %.200q", len(failed.Log), failed.Log)
	}
}

func TestReuse(t *testing.T) {
	t.Parallel()
	const dockerfile = "FROM debian\nARG A=1\nRUN one\nCOPY a* /\nUSER agent\nRUN two\nCMD x\n"
	files := map[string]string{"a1": "1", "a2": "2", "b": "b"}
	tests := []struct {
		name, dockerfile string
		files            map[string]string
		want             int
	}{
		{"nothing", dockerfile, files, 0},
		{"what is not copied", dockerfile, map[string]string{"a1": "1", "a2": "2"}, 0},
		{"a setting", strings.Replace(dockerfile, "CMD x", "CMD y", 1), files, 0},
		{"spelling", strings.Replace(dockerfile, "ARG A=1", "# more\nARG A='1'", 1), files, 0},
		{"content", dockerfile, map[string]string{"a1": "1", "a2": "x"}, 2},
		{"a name", dockerfile, map[string]string{"a1": "1", "a3": "2"}, 2},
		{"a variable", strings.Replace(dockerfile, "A=1", "A=2", 1), files, 3},
		{"the user", strings.Replace(dockerfile, "agent", "0", 1), files, 1},
		{"the command", strings.Replace(dockerfile, "two", "three", 1), files, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if _, err := b.do(dockerfile, files); err != nil {
				t.Fatal(err)
			}
			if len(b.steps) != 3 {
				t.Fatalf("%d steps at first", len(b.steps))
			}
			b.steps = nil
			if _, err := b.do(tt.dockerfile, tt.files); err != nil {
				t.Fatal(err)
			}
			if len(b.steps) != tt.want {
				t.Errorf("%d steps were run again, want %d", len(b.steps), tt.want)
			}
		})
	}
}

func TestFreshAndProgress(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	fill(t, dir, map[string]string{"Dockerfile": "FROM debian\nRUN one\nWORKDIR /w\n"})
	var said []string
	req := Request{ContextDir: dir, Name: "task", Labels: sandbox.Labels{Job: "j"}, Progress: func(m string) { said = append(said, m) }}
	for _, req.Fresh = range []bool{false, true} {
		if _, err := b.Build(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	once := []string{"building task", "building task: step 1 of 2: RUN one", "building task: step 2 of 2: WORKDIR /w"}
	if diff := cmp.Diff(append(once, once...), said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, s := range b.steps {
		if s.Name != "task" || s.Labels.Job != "j" {
			t.Errorf("step %+v", s)
		}
	}
	if b.steps[0].Network != sandbox.NetworkPublic || b.steps[1].Network != sandbox.NetworkNone {
		t.Errorf("networks %q, %q", b.steps[0].Network, b.steps[1].Network)
	}
}
