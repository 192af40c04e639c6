// Package version says which build of proctor is running.
package version

import (
	"runtime"
	"runtime/debug"
)

// release and commit are set by the linker in releases
// (-ldflags "-X …/internal/version.release=v1.2.3"); otherwise the build
// information says what was built.
var release, commit string

// Harbor is the release of Harbor whose files and numbers proctor reproduces.
const Harbor = "0.13.1"

// Build describes a build.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	Harbor  string `json:"harbor"`
}

// Current describes the running program.
func Current() Build {
	b := Build{Version: release, Commit: commit, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Harbor: Harbor}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && b.Commit == "" {
			b.Commit = s.Value
		}
	}
	return b
}

// LinkerFlags make another build of the same sources the same build.
func (b Build) LinkerFlags() string {
	const path = "github.com/proctor-run/proctor/internal/version."
	return "-X " + path + "release=" + b.Version + " -X " + path + "commit=" + b.Commit
}

// ID tells one build from another, so that a supervisor inside a sandbox and
// its client never come from different ones.
func (b Build) ID() string { return b.Version + " " + b.Commit }
