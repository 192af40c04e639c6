package rootplan

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/proctor-run/proctor/sandbox/internal/mountinfo"
	"github.com/proctor-run/proctor/sandbox/oci/internal/network"
)

// machineWithData has files of its people beside those of its system.
func machineWithData(mounts ...mountinfo.Mount) host {
	h := testHost(mounts...)
	files := h.files.(fstest.MapFS)
	for _, name := range []string{
		"opt/tool/bin/tool", "opt/tool/jobs/1", "opt/other", "srv/tasks/solve.sh", "etc/app/password", "etc/ssl/certs/a.pem", "etc/ssl/private/key",
		"var/lib/app/db", "var/lib/dpkg/status", "home/bob/.ssh/id", "home/bob/.config/token", "home/bob/bin/tool", "home/eve/file", "root/.aws/key",
	} {
		files[name] = &fstest.MapFile{Data: []byte("x"), Mode: 0o644}
	}
	files["etc/localtime"] = &fstest.MapFile{Data: []byte("/data/zone"), Mode: fs.ModeSymlink | 0o777}
	files["data/zone"] = &fstest.MapFile{Data: []byte("x"), Mode: 0o644}
	files["links"] = &fstest.MapFile{Data: []byte("/opt"), Mode: fs.ModeSymlink | 0o777}
	return h
}

// seen reports whether a sandbox sees a file of the host.
func seen(p *Plan, name string) bool {
	hidden := whiteouts(p.hide)
	for dir := name; dir != ""; dir = dir[:strings.LastIndexByte(dir, '/')] {
		if slices.Contains(hidden, dir) {
			return false
		}
	}
	inPart := slices.ContainsFunc(partPaths(p), func(part string) bool { return part == "/" || strings.HasPrefix(name+"/", part+"/") })
	return inPart || p.skeleton.Has(name)
}

func TestPlanHostShows(t *testing.T) {
	t.Parallel()
	system := []string{"/usr/bin/true", "/bin", "/etc/passwd", "/etc/localtime", "/etc/ssl/certs/a.pem", "/var/lib/dpkg/status"}
	others := []string{
		"/opt/tool/bin/tool", "/opt/tool/jobs/1", "/opt/other", "/srv/tasks/solve.sh", "/etc/app/password", "/etc/ssl/private/key", "/data/zone", "/data/jobs/1",
		"/var/lib/app/db", "/small", "/links", "/home/bob/.ssh/id", "/home/bob/.config/token", "/home/bob/bin/tool", "/home/eve/file", "/root/.aws/key",
		"/people/ann/file", "/etc/shadow",
	}
	tests := []struct {
		name, show string
		seen       []string // of others
	}{
		{name: "nothing more"},
		{"directory, without the jobs in it", "/opt/tool", []string{"/opt/tool/bin/tool"}},
		{"file", "/etc/app/password", []string{"/etc/app/password"}},
		{"directory with passwords of the machine", "/etc", []string{"/etc/app/password"}},
		{"directory of programs' data", "/var/lib", []string{"/var/lib/app/db"}},
		{"another disk", "/data/zone", []string{"/data/zone"}},
		{"through a link", "/links/tool", []string{"/links", "/opt/tool/bin/tool"}},
		{"below a home", "/home/bob/bin", []string{"/home/bob/bin/tool"}},
		{"home, without its keys", "/home/bob", []string{"/home/bob/bin/tool"}},
		{"home of a person elsewhere", "/people/ann", []string{"/people/ann/file"}},
		{"all homes, which are masked one by one", "/home", nil},
		{"root's home", "/root", nil},
	}
	for _, tt := range tests {
		for name, locked := range map[string]bool{"": false, ", locked": true} {
			t.Run(tt.name+name, func(t *testing.T) {
				t.Parallel()
				h := machineWithData(mountinfo.Mount{Path: "/data", Type: "ext4"}, mountinfo.Mount{Path: "/usr", Type: "ext4"})
				h.locked = locked
				p := hostPlanner{host: h}
				var show []string
				if tt.show != "" {
					show = []string{tt.show}
				}
				plan, err := planHost(h, []string{"/opt/tool/jobs", "/jobs"}, show, network.Identity("box", network.None, p.below))
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range system {
					if !seen(plan, f) {
						t.Errorf("%s is not seen", f)
					}
				}
				for _, f := range others {
					if got, want := seen(plan, f), slices.Contains(tt.seen, f); got != want {
						t.Errorf("%s: seen is %v, want %v", f, got, want)
					}
				}
			})
		}
	}
}

func TestShowRefused(t *testing.T) {
	t.Parallel()
	h := machineWithData()
	for name, want := range map[string]string{
		"opt": "absolute path", "/": "absolute path", "/nowhere": "no such file",
		"/opt/tool/jobs": "it holds", "/opt/tool/jobs/1": "it holds", "/jobs": "it holds", "/data/jobs/1": "it holds",
		"/links/tool/jobs": "it holds", "/etc/shadow": "it holds", "/etc/ssl/private/key": "it holds",
		"/home/bob/.ssh": "it holds", "/home/bob/.ssh/id": "it holds", "/root/.aws/key": "it holds",
		"/run": "it holds", "/var/run/docker.sock": "it holds", "/proc": "it holds", "/dev": "it holds",
	} {
		_, err := showable(h.files, []string{"/opt/other", name}, []string{"/opt/tool/jobs", "/jobs"})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"`+name+`"`) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
}
