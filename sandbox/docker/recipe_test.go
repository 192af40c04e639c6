package docker

import (
	"strings"
	"testing"
)

func TestRecipe(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text     string
		buildKit bool
		bases    string
	}{
		{"FROM debian:12\nRUN true", false, "debian:12"},
		{"ARG V=12\nARG IMAGE=debian:${V}\nFROM $IMAGE AS a\nFROM a\nFROM scratch\nCOPY --from=0 /x /\nCOPY --from=busybox:1 /x /\nCOPY --from=A /y /", false, "debian:12 busybox:1"},
		{"FROM x\nRUN --mount=type=cache,target=/c true", true, "x"},
		{"FROM x\nRUN --network=none --mount=type=cache,target=/c true", true, "x"},
		{"FROM x\nCOPY --chown=1:1 --chmod=755 a b", true, "x"},
		{"FROM x\nCOPY --chown=1:1 a b", false, "x"},
		{"FROM x\nRUN <<EOF\ntrue\nEOF", true, "x"},
		{"FROM x\nrun cat <<'EOF' >y\ntrue\nEOF", true, "x"},
		{"# syntax=docker/dockerfile:1\nFROM x", true, "x"},
		{"FROM x\nRUN echo --mount", false, "x"},
		{"nonsense", false, ""},
		{"", false, ""},
	} {
		r := readRecipe(tt.text, nil)
		if r.buildKit != tt.buildKit || strings.Join(r.bases, " ") != tt.bases {
			t.Errorf("%q: got %+v, want BuildKit %v and bases %q", tt.text, r, tt.buildKit, tt.bases)
		}
	}
}

func FuzzRecipe(f *testing.F) {
	f.Add("ARG A=b\nFROM ${A:-c} AS d\nCOPY --from=${A} x y")
	f.Fuzz(func(t *testing.T, text string) { readRecipe(text, nil) })
}
