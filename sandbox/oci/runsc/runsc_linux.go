package runsc

import (
	"gvisor.dev/gvisor/pkg/log"
	"gvisor.dev/gvisor/runsc/cli"
	"gvisor.dev/gvisor/runsc/cmd"
	"gvisor.dev/gvisor/runsc/cmd/sentry/sentrycmd"
	"gvisor.dev/gvisor/runsc/cmd/util"

	"github.com/proctor-run/proctor/sandbox/oci/internal/runtimes"
)

// Reexec is to be called first thing in main, with os.Args, before oci.Reexec where a
// program calls both. When the program was executed to be gVisor it is, and exits by
// itself; what goes wrong before returns the exit code for the caller to exit with.
// build is what oci.Options has as Build: one of another build refuses.
func Reexec(args []string, build string) (code int, handled bool) {
	return runtimes.Reexec(args, runtimes.Helpers{GVisor: run, Build: build})
}

// run is gVisor with the commands that a sandbox needs.
func run() {
	// Without its programs it compiles them, and says so in its log.
	if err := giveFilters(gvisorVersion()); err != nil {
		log.Warningf("proctor: %v", err)
	}
	const group = ""
	cli.Run(nil, map[util.SubCommand]string{
		new(cmd.Run): group, new(cmd.Gofer): group, new(sentrycmd.Boot): group, new(sentrycmd.Umount): group,
	}, nil)
}
