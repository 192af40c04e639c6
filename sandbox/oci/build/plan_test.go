package build

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"

	"github.com/proctor-run/proctor/sandbox/oci/image"
)

func TestNeeded(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		needed     []int
		images     string
	}{
		{"one", "FROM a:1", []int{0}, "a:1"},
		{"chain", "FROM a AS x\nFROM b\nFROM x AS y\nFROM y", []int{0, 2, 3}, "a"},
		{"copies", "FROM a AS x\nFROM b AS y\nFROM c AS z\nFROM d\nCOPY --from=X . .\nCOPY --from=2 . .\nCOPY --from=e:5 . .", []int{0, 2, 3}, "a c d e:5"},
		{"mounts", "FROM a AS x\nFROM b\nFROM scratch\nRUN --mount=from=x,target=/x --mount=type=bind,from=f,target=/y z", []int{0, 2}, "a f"},
		{"a stage named as its image", "FROM debian AS debian\nFROM debian", []int{0, 1}, "debian"},
		{"two of a name", "FROM a AS x\nFROM b AS x\nFROM x", []int{1, 2}, "b"},
		{"numbers are no names of FROM", "FROM a\nFROM 0", []int{1}, "0"},
		{"arguments", "ARG A=x B=${A}y\nFROM $A AS s\nFROM ${B}:${C:-1}", []int{1}, "xy:1"},
	}
	for _, tt := range tests {
		p, err := parse(tt.text, "amd64")
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var images []string
		for _, ref := range p.images() {
			images = append(images, ref.name)
		}
		if !slices.Equal(p.needed, tt.needed) || strings.Join(images, " ") != tt.images {
			t.Errorf("%s: got %v and %q, want %v and %q", tt.name, p.needed, images, tt.needed, tt.images)
		}
	}
}

func TestPlatform(t *testing.T) {
	t.Parallel()
	for platform, ok := range map[string]bool{
		"linux/amd64": true, "linux/x86_64": true, "Linux/AMD64": true, "linux": true, "amd64": true, "$TARGETPLATFORM": true, "${BUILDOS}/$BUILDARCH": true,
		"linux/arm64": false, "windows/amd64": false, "linux/amd64/v3": false, "arm64": false, "windows": false,
	} {
		p, err := parse("FROM --platform="+platform+" a", "amd64")
		if err != nil {
			t.Fatal(err)
		}
		if err := p.check(); (err == nil) != ok {
			t.Errorf("%s: %v", platform, err)
		}
	}
	for platform, ok := range map[string]bool{"linux/arm64/v8": true, "linux/aarch64": true, "linux/arm/v7": false} {
		p, err := parse("FROM --platform="+platform+" a", "arm64")
		if err != nil {
			t.Fatal(err)
		}
		if err := p.check(); (err == nil) != ok {
			t.Errorf("%s on arm64: %v", platform, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       Settings
	}{
		{"plain", "FROM debian:12\nWORKDIR /app\n", Settings{Workdir: "/app"}},
		{"relative", "FROM a\nWORKDIR x\nWORKDIR y/../z\n", Settings{Workdir: "/x/z"}},
		{"variables", "FROM a\nENV A=1 B=$A\nENV C=$A-${B:-none}\nWORKDIR /w/$C\n", Settings{Env: []string{"A=1", "B=", "C=1-none"}, Workdir: "/w/1-none"}},
		{"old ENV", "FROM a\nENV NAME some words\n", Settings{Env: []string{"NAME=some words"}}},
		{"PATH", "FROM a\nENV PATH=/opt/bin:$PATH\n", Settings{Env: []string{"PATH=/opt/bin:" + defaultPath}}},
		{"global ARG", "ARG TAG=9\nFROM a:$TAG\nARG TAG\nENV T=$TAG\n", Settings{Env: []string{"T=9"}}},
		{"ARG of a stage", "FROM a\nARG D=/d\nWORKDIR $D\nUSER ${U:-me}\n", Settings{Workdir: "/d", User: "me"}},
		{"stages", "FROM a AS one\nENV X=1\nRUN make\nFROM b\nENV Y=2\n", Settings{Env: []string{"Y=2"}}},
		{"stage on stage", "FROM a AS one\nENV X=1\nWORKDIR /w\nFROM ONE\nWORKDIR $X\n", Settings{Env: []string{"X=1"}, Workdir: "/w/1"}},
		{"what cannot be built", "FROM --platform=x/y a\nADD https://x.org/y /\nCOPY nothing /\nRUN exit 1\nUSER u\n", Settings{User: "u"}},
	}
	for _, tt := range tests {
		got, err := describe(t.Context(), tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if len(got.Env) == 0 {
			got.Env = nil
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	dir := t.TempDir()
	if _, err := Describe(t.Context(), dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a Dockerfile: %v", err)
	}
	fill(t, dir, map[string]string{"Dockerfile ->": "../../../../../../etc/passwd"})
	if _, err := Describe(t.Context(), dir); err == nil {
		t.Error("a link out of the context was followed")
	}
}

// paper does what a build does to files on paper.
type paper struct {
	context, root tree
	errs          []error
}

func (p *paper) base(string) image.Image { return image.Image{} }
func (p *paper) begin(string)            {}

func (p *paper) run(_ context.Context, st *state, c *instructions.RunCommand, from func(string) (image.Image, error)) error {
	argv, _, err := commandLine(st, c)
	if err == nil && len(argv) == 0 {
		err = errors.New("a command of nothing")
		p.errs = append(p.errs, err)
	}
	return err
}

func (p *paper) copy(_ context.Context, st *state, op *copying) error {
	placing, err := layOut(op, p.context, p.root, st.dir())
	if err != nil {
		return err
	}
	for _, it := range placing.items {
		if path.IsAbs(it.Name) || it.Name == ".." || strings.HasPrefix(it.Name, "../") {
			p.errs = append(p.errs, errors.New("item "+it.Name+" lies outside"))
		}
	}
	return nil
}

func (p *paper) makeWorkdir(_ context.Context, st *state) error {
	_, _, err := resolve(p.root, st.workdir)
	return err
}

func FuzzDockerfile(f *testing.F) {
	for _, seed := range []string{
		"ARG A=1\nFROM a:$A AS b\nENV X=$A\nWORKDIR $X\nFROM b\nUSER u\nCOPY --chown=root --chmod=755 d/* /l/../x/\n",
		"# escape=`\nFROM x\nENV A `\n b=c\nRUN <<E\n#!/x\nE\n",
		"FROM a\nRUN --mount=type=cache,target=/x --network=none [\"a\"]\nADD d/../../f <<E /y/\nE\n",
		"FROM --platform=linux/amd64 a\nLABEL a=b\nSHELL [\"x\"]\nENTRYPOINT y\nCMD [\"z\"]\nONBUILD RUN x\nHEALTHCHECK NONE\nVOLUME /v\n",
	} {
		f.Add(seed)
	}
	source, root := f.TempDir(), f.TempDir()
	for name, target := range map[string]string{"up": "../../../..", "abs": "/etc", "loop": "loop", "d": "../../d2"} {
		if err := errors.Join(os.Symlink(target, filepath.Join(source, name)), os.Symlink(target, filepath.Join(root, name))); err != nil {
			f.Fatal(err)
		}
	}
	for _, dir := range []string{source, root} {
		if err := errors.Join(os.Mkdir(filepath.Join(dir, "d2"), 0o755), os.WriteFile(filepath.Join(dir, "f"), nil, 0o644)); err != nil {
			f.Fatal(err)
		}
	}
	files := func(dir string) tree { return image.Image{Layers: []image.Layer{{Dir: dir}}}.Files() }
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		p, err := parse(text, "amd64")
		if err != nil {
			return
		}
		_ = p.check() // errors are fine
		x := &paper{context: files(source), root: files(root)}
		st, err := p.evaluate(t.Context(), x)
		for _, e := range x.errs {
			t.Error(e)
		}
		if err != nil {
			return
		}
		if st.workdir != "" && !path.IsAbs(st.workdir) {
			t.Errorf("working directory %q is not absolute", st.workdir)
		}
		for _, kv := range st.changes().Env {
			if key, _, ok := strings.Cut(kv, "="); !ok || key == "" {
				t.Errorf("variable %q", kv)
			}
		}
	})
}
