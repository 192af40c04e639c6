package oci

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseRecipe(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       recipe
	}{
		{"plain", "FROM debian:12\nWORKDIR /app\n", recipe{from: "debian:12", workdir: "/app"}},
		{"relative workdirs", "FROM a\nWORKDIR x\nWORKDIR y/../z\n", recipe{from: "a", workdir: "/x/z"}},
		{"variables", "FROM a\nENV A=1 B=$A\nENV C=$A-${B:-none}\nWORKDIR /w/$C\n", recipe{
			from: "a", env: []string{"A=1", "B=", "C=1-none"}, workdir: "/w/1-none",
		}},
		{"old ENV", "FROM a\nENV NAME some words\n", recipe{from: "a", env: []string{"NAME=some words"}}},
		{"global ARG", "ARG TAG=9\nFROM a:$TAG\nARG TAG\nENV T=$TAG\n", recipe{from: "a:9", env: []string{"T=9"}}},
		{"ARG of a stage", "FROM a\nARG D=/d\nWORKDIR $D\nUSER ${U:-me}\n", recipe{from: "a", workdir: "/d", user: "me"}},
		{"stages", "FROM a AS one\nENV X=1\nRUN make\nFROM b\nENV Y=2\n", recipe{from: "b", env: []string{"Y=2"}}},
		{"stage on stage", "FROM a AS one\nENV X=1\nWORKDIR /w\nFROM ONE\nWORKDIR $X\n", recipe{from: "a", env: []string{"X=1"}, workdir: "/w/1"}},
		{"builds", "FROM a\nCMD [\"x\"]\nCOPY . /\nRUN make\n", recipe{from: "a", builds: "COPY"}},
		{"no build", "FROM a\nLABEL x=y\nEXPOSE 80\nENTRYPOINT [\"x\"]\nHEALTHCHECK NONE\nSTOPSIGNAL 9\nSHELL [\"bash\"]\nVOLUME /v\n", recipe{from: "a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseRecipe(strings.NewReader(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, *got, cmp.AllowUnexported(recipe{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, bad := range []string{"", "RUN x", "FROM", "FROM a\nNONSENSE x\n", "FROM a\nWORKDIR ${x\n"} {
		if _, err := parseRecipe(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestReadRecipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := readRecipe(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a Dockerfile: %v", err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "Dockerfile")); err != nil {
		t.Fatal(err)
	}
	if _, err := readRecipe(dir); err == nil {
		t.Error("a link out of the context was followed")
	}
}

// Fuzzing cannot instrument gVisor, which this package is linked with, so that
// the odd inputs come from a generator.
func TestParseRecipeSurvives(t *testing.T) {
	t.Parallel()
	line := rapid.OneOf(
		rapid.SampledFrom([]string{"FROM a", "FROM a AS b", "FROM b", "ARG X=1", "ENV A=$X", "WORKDIR $A/../..", "WORKDIR ..", "USER ${A:?}", "RUN <<E", "E", "# escape=`", "\\"}),
		rapid.StringN(0, 40, 120),
	)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(line, 0, 12).Draw(t, "lines"), "\n")
		r, err := parseRecipe(strings.NewReader(text))
		if err == nil && r.workdir != "" && r.workdir[0] != '/' {
			t.Errorf("working directory %q is not absolute", r.workdir)
		}
	})
}

func TestLatest(t *testing.T) {
	t.Parallel()
	got := latest([]string{"A=1", "B=2", "A=3", "C"})
	if diff := cmp.Diff([]string{"A=3", "B=2", "C"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
