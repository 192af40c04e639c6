// Package sandboxes opens the backends that tasks run in: Docker's containers,
// sandboxes without a daemon, and what a program brings of its own ([Entry]). It is for programs of cubes' authors whose
// tasks need containers, and proctor itself opens its environments with it.
//
// [Main] is the whole program of an author, and [TestMain] goes with tests that
// [Open] sandboxes. One of them, or [Reexec], has to run first, because the
// program is executed again inside the sandboxes.
package sandboxes

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/proctor-run/proctor/internal/ownfiles"
	"github.com/proctor-run/proctor/sandbox/egress"
)

// Options say how a backend is opened. The zero value is what a program without
// settings of its own wants.
type Options struct {
	// Backends are those that can be opened; nil means those that come with proctor.
	Backends Registry
	// Runtime is the OCI runtime of environments sandbox and host: gvisor,
	// native, runc, crun or a path. Empty means gvisor; it and native are built
	// in.
	Runtime string
	// PIDs is how many processes and threads a sandbox may have where its
	// resources do not say; 0 means 4096, less means no limit. Environments
	// sandbox and host enforce it with gvisor, and with other runtimes where root
	// can write to cgroups.
	PIDs int64
	// HostNetwork lets public sandboxes of environments sandbox and host share this
	// machine's network, its loopback services and abstract sockets included. Other
	// environments have no such network, and hardened sandboxes must not have it: they
	// are refused.
	HostNetwork bool
	// Hardened makes every sandbox as if its Spec asked for it, see sandbox.Spec. A
	// backend that cannot is refused.
	Hardened bool
	// Keep says that sandboxes will be kept, see sandbox.Spec. A backend that cannot
	// is refused.
	Keep bool
	// CollectKept lets sandboxes that were kept be removed like others, once their
	// owner has ended.
	CollectKept bool
	// AllowRemoteEngine lets a container engine be spoken to over plain TCP.
	AllowRemoteEngine bool
	// Mirrors are OCI layout directories that are asked for images before a
	// registry is.
	Mirrors []string
	// Mask lists absolute host paths that environment host must not show.
	Mask []string
	// Show lists absolute host paths that environment host shows beside the
	// system's own files.
	Show []string
	// Egress is how the egress proxy reaches the world; the zero value is this
	// machine's resolver and network.
	Egress egress.Upstream
	// Cleaning says that no sandbox will be made: what killed programs left is
	// looked for.
	Cleaning bool

	// Helpers are what a program that is a single file carries in place of the programs
	// beside it: for each of them NAME.gz, compressed with gzip (RFC 1952), and NAME.sha256,
	// the digest of what that holds, in hexadecimal. The names are proctor-guest,
	// proctor-runsc and, for engines on another machine, proctor-guest-linux-ARCH. Each is
	// unpacked into the cache when it is first needed, unless it lies beside the program. Nil
	// means that the program carries nothing.
	Helpers fs.FS

	// Environ is the environment, KEY=VALUE, of which the last of a name
	// counts; nil means that of the process.
	Environ []string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Notice is called with lines that users should read, such as that a build
	// takes a minute; nil prints them to the standard error output.
	Notice func(line string)
	// Chosen is told what "auto" came to; nil means that Notice is told when it
	// passes over an environment that somebody meant.
	Chosen func(Choice)
}

func (o Options) getenv(name string) string {
	for i := len(o.Environ) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(o.Environ[i], "="); ok && k == name {
			return v
		}
	}
	return ""
}

// Directories are where files are kept besides those of jobs.
type Directories struct {
	// State holds what belongs to running sandboxes, Cache what can be had
	// again.
	State, Cache string
}

// Images is where environment sandbox keeps images.
func (d Directories) Images() string { return filepath.Join(d.Cache, "images") }

// FindDirectories follows PROCTOR_STATE_DIR and PROCTOR_CACHE_DIR, then the
// XDG variables; root without them uses /var/lib and /var/cache.
func FindDirectories(getenv func(string) string) (Directories, error) {
	lookup := func(name string) (string, bool) {
		v := getenv(name)
		return v, v != ""
	}
	state, stateErr := ownfiles.State(lookup)
	cache, cacheErr := ownfiles.Cache(lookup)
	return Directories{State: state, Cache: cache}, errors.Join(stateErr, cacheErr)
}
