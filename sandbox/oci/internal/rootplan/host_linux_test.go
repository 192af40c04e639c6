package rootplan

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/sandbox/internal/mountinfo"
	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
	"github.com/proctor-run/proctor/sandbox/oci/internal/network"
)

func testHost(mounts ...mountinfo.Mount) host {
	dir := &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	link := func(to string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
	}
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s), Mode: 0o644} }
	return host{mounts: append([]mountinfo.Mount{{Path: "/", Type: "ext4"}}, mounts...), files: fstest.MapFS{
		"bin": link("usr/bin"), "usr/bin/true": text("x"), "var/run": link("/run"), "run/docker.sock": text(""),
		"etc/passwd":               text("root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/people/ann:/bin/sh\njob:x:120:120::/var/lib/job:/bin/sh\nbin:x:2:2::/bin:/bin/sh\nevil:x:1001:1:x:/usr:/bin/sh\n"),
		"etc/group":                text("root:x:0:\nann:x:1000:\n"),
		"etc/shadow":               text("root:secret:1::::::\n"),
		"etc/ssh/ssh_host_rsa_key": text("secret"), "etc/ssh/ssh_host_rsa_key.pub": text("public"),
		"home/bob/file": text("x"), "root/.ssh/id": text("secret"), "tmp": {Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		"people/ann/file": text("x"), "var/lib/job/.ssh/id": text("secret"), "var/lib/job/data": text("x"),
		"data/jobs/1": text("x"), "jobs": link("data/jobs"),
		"proc": dir, "dev": dir, "small": text("copied"),
	}}
}

func planTest(t *testing.T, h host, masks ...string) *Plan {
	t.Helper()
	p := hostPlanner{host: h}
	plan, err := planHost(h, masks, nil, network.Identity("box", network.None, p.below))
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func partPaths(p *Plan) []string {
	var paths []string
	for _, pt := range p.parts {
		paths = append(paths, pt.Path)
	}
	return paths
}

func whiteouts(t rootfs.Tree) []string {
	var names []string
	for name, e := range t {
		if e.Kind == fs.ModeCharDevice {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestPlanHostMasks(t *testing.T) {
	t.Parallel()
	plan := planTest(t, testHost(mountinfo.Mount{Path: "/proc", Type: "proc"}, mountinfo.Mount{Path: "/dev", Type: "devtmpfs"}), "/jobs", "/nowhere")
	want := []string{
		"/data", "/dev", "/etc/shadow", "/etc/ssh", "/home", "/jobs", "/people", "/proc", "/root", "/run", "/small", "/tmp", "/var/lib/job",
	}
	if diff := cmp.Diff(want, whiteouts(plan.hide)); diff != "" {
		t.Errorf("hidden (-want +got):\n%s", diff)
	}
	if got := partPaths(plan); !slices.Equal(got, []string{"/"}) || plan.skeleton != nil {
		t.Errorf("parts %q, skeleton %v: want one part", got, plan.skeleton)
	}
	if e := plan.fresh["/tmp"]; e.Mode != fs.ModeSticky|0o777 || e.Kind != fs.ModeDir {
		t.Errorf("/tmp is %v", e)
	}
	if got := string(plan.fresh["/etc/shadow"].Data); strings.Contains(got, "secret") || !strings.HasPrefix(got, "root:*:") {
		t.Errorf("/etc/shadow is %q", got)
	}
	if _, ok := plan.fresh["/etc/ssh/ssh_host_rsa_key"]; ok {
		t.Error("a masked key is in the tree on top")
	}
}

func TestPlanHostParts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		mounts []mountinfo.Mount
		locked bool
		want   []string
	}{
		{"disk with programs", []mountinfo.Mount{{Path: "/usr", Type: "ext4"}}, false, []string{"/etc", "/usr", "/var"}},
		{"other disk", []mountinfo.Mount{{Path: "/data", Type: "ext4"}}, false, []string{"/"}},
		{"locked", []mountinfo.Mount{{Path: "/proc", Type: "proc"}, {Path: "/var/lib/job", Type: "tmpfs"}}, true, []string{"/etc", "/usr"}},
		{"locked without mounts", nil, true, []string{"/"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := testHost(tt.mounts...)
			h.locked = tt.locked
			plan := planTest(t, h)
			if got := partPaths(plan); !slices.Equal(got, tt.want) {
				t.Errorf("parts %q, want %q", got, tt.want)
			}
			if plan.skeleton == nil {
				return
			}
			if got := string(plan.skeleton["/bin"].Data); got != "usr/bin" {
				t.Errorf("/bin leads to %q", got)
			}
			for _, hidden := range []string{"/small", "/data", "/people", "/root/.ssh", "/home/bob", "/run/docker.sock"} {
				if plan.skeleton.Has(hidden) {
					t.Errorf("%s is in the skeleton", hidden)
				}
			}
			for _, empty := range []string{"/root", "/tmp", "/proc"} {
				if !plan.skeleton.Has(empty) {
					t.Errorf("%s is not in the skeleton", empty)
				}
			}
		})
	}
}

// A tree is created from parents to children, so it must hold all parents.
func TestTreeHasParents(t *testing.T) {
	t.Parallel()
	plan := planTest(t, testHost(mountinfo.Mount{Path: "/usr", Type: "ext4"}))
	for _, tr := range []rootfs.Tree{plan.fresh, plan.hide, plan.skeleton} {
		for name := range maps.Keys(tr) {
			for dir := name; dir != "/"; {
				dir = dir[:max(strings.LastIndexByte(dir, '/'), 1)]
				if strings.HasSuffix(dir, "/") && dir != "/" {
					dir = strings.TrimSuffix(dir, "/")
				}
				if e, ok := tr[dir]; !ok || e.Kind != fs.ModeDir {
					t.Errorf("%q has no parent %q", name, dir)
				}
			}
		}
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"a/b": {Data: []byte("x")}, "rel": {Data: []byte("a/../a"), Mode: fs.ModeSymlink}, "abs": {Data: []byte("/rel/b"), Mode: fs.ModeSymlink},
		"loop": {Data: []byte("loop"), Mode: fs.ModeSymlink}, "up": {Data: []byte("../../.."), Mode: fs.ModeSymlink},
	}
	for name, want := range map[string]string{"/a/b": "/a/b", "/rel/b": "/a/b", "/abs": "/a/b", "/": "/", "/up/a": "/a", "/loop": "", "/none": "", "/a/none": ""} {
		if got, ok := resolve(files, name); got != want || ok != (want != "") {
			t.Errorf("resolve(%q) = %q, %v, want %q", name, got, ok, want)
		}
	}
}
