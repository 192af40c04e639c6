package cubecli

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/proctor-run/proctor/internal/version"
)

// programVersion is the version of the program's module, and of the proctor in it.
func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return fmt.Sprintf("%s (proctor %s)", cmp.Or(info.Main.Version, "(devel)"), proctorVersion(info))
}

// proctorVersion is that of proctor among the modules of a build.
func proctorVersion(info *debug.BuildInfo) string {
	for _, m := range info.Deps {
		if m.Path == modulePath {
			return m.Version
		}
	}
	return version.Current().Version
}

const modulePath = "github.com/proctor-run/proctor"
