//go:build unix

package build

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// TestSetGroupID: a directory that is made below one with the set-group-id bit has the
// bit and the group, and with an owner of its own the bit.
func TestSetGroupID(t *testing.T) {
	t.Parallel()
	root := fstest.MapFS{
		"g":     {Mode: fs.ModeDir | fs.ModeSetgid | 0o775, Sys: &syscall.Stat_t{Gid: 60}},
		"plain": {Mode: fs.ModeDir | 0o775, Sys: &syscall.Stat_t{Gid: 60}},
	}
	src := t.TempDir()
	fill(t, src, map[string]string{"d/sub/f": "f"})
	from := image.Image{Layers: []image.Layer{{Dir: src}}}
	for name, tt := range map[string]struct {
		op   copying
		want string
	}{
		"file":                {copying{sources: []string{"d/sub/f"}, dest: "/g/n/m/"}, "g/n 2755 0:60|g/n/m 2755 0:60"},
		"content":             {copying{sources: []string{"d"}, dest: "/g/n"}, "g/n 2755 0:60|g/n/sub 755 0:0"},
		"given":               {copying{sources: []string{"d/sub/f"}, dest: "/g/n/m/", chown: "7:8"}, "g/n 2755 7:8|g/n/m 2755 7:8"},
		"below a plain one":   {copying{sources: []string{"d/sub/f"}, dest: "/plain/n/"}, "plain/n 755 0:0"},
		"below a copied one":  {copying{sources: []string{"d"}, dest: "/g"}, "g/sub 755 0:0"},
		"with a mode of dirs": {copying{sources: []string{"d"}, dest: "/g/n", chmod: "700"}, "g/n 2755 0:60|g/n/sub 700 0:0"},
	} {
		p, err := layOut(&tt.op, from.Files(), root, "/")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, it := range p.items {
			if it.Kind == kindDir {
				got = append(got, fmt.Sprintf("%s %o %d:%d", it.Name, it.Mode, it.Owner.UID, it.Owner.GID))
			}
		}
		if got := strings.Join(got, "|"); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
	p := newPlacing(root)
	p.parents = &owner{5, 6} // as WORKDIR gives it to the user
	if err := p.mkdirs("g/w/x"); err != nil {
		t.Fatal(err)
	}
	for _, it := range p.items {
		if it.Mode != 0o2755 || it.Owner != (owner{5, 6}) {
			t.Errorf("working directory %s: %o, %v", it.Name, it.Mode, it.Owner)
		}
	}
}

// TestHardLinks: names of one file in a copied directory of an image are names of one
// file again, and those that are copied one by one are not.
func TestHardLinks(t *testing.T) {
	t.Parallel()
	src := t.TempDir()
	fill(t, src, map[string]string{"d/a": "a", "d/s/": "", "plain": "p"})
	for _, name := range []string{"d/b", "d/s/c", "out"} {
		if err := os.Link(filepath.Join(src, "d/a"), filepath.Join(src, name)); err != nil {
			t.Fatal(err)
		}
	}
	img := image.Image{Layers: []image.Layer{{Dir: src}}}
	for name, tt := range map[string]struct {
		op   copying
		want string
	}{
		"a directory":        {copying{sources: []string{"d"}, dest: "/n", image: &img}, "n/a f|n/b h n/a|n/s/c h n/a"},
		"twice":              {copying{sources: []string{"d", "d/s"}, dest: "/n/", image: &img}, "n/a f|n/b h n/a|n/s/c h n/a|n/c f"},
		"one by one":         {copying{sources: []string{"d/a", "d/b"}, dest: "/n/", image: &img}, "n/a f|n/b f"},
		"less the first":     {copying{sources: []string{"d"}, dest: "/n", image: &img, excludes: []string{"a"}}, "n/b f|n/s/c h n/b"},
		"of the context":     {copying{sources: []string{"d"}, dest: "/n"}, "n/a f|n/b f|n/s/c f"},
		"of what is mounted": {copying{sources: []string{"/"}, dest: "/m", image: &img}, "m/d/a f|m/d/b h m/d/a|m/d/s/c h m/d/a|m/out h m/d/a|m/plain f"},
	} {
		p, err := layOut(&tt.op, img.Files(), image.Image{}.Files(), "/")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, it := range p.items {
			if it.Kind != kindDir {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %c %s", it.Name, it.Kind, it.Target)))
			}
		}
		if got := strings.Join(got, "|"); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
		to := t.TempDir()
		if _, err := p.writeBelow(t.Context(), to); err != nil && name != "twice" {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := newBench(t)
	b.images["tools"] = img
	if _, err := b.do("FROM debian\nCOPY --from=tools /d /n\n", nil); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(b.placed, func(s string) bool { return strings.HasSuffix(s, "= n/a") }) {
		t.Errorf("placed %q", b.placed)
	}
}
