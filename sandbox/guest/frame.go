package guest

import (
	"fmt"

	"github.com/proctor-run/proctor/sandbox/internal/frames"
)

// The greeting of both sides. Its text is the build.
const (
	magic = "proctor-guest\n"
	// protocolVersion changes with every change of the bytes on the wire.
	protocolVersion = 3
)

const (
	// maxRequest bounds a request: Linux passes at most 2 MiB of arguments
	// and environment by default, 6 MiB with a large stack limit.
	maxRequest = 8 << 20
	// window is how many bytes of one call may be under way before the
	// receiver grants more.
	window = 512 << 10
	// filesWindow is that of uploads and downloads, of which there are few at a time: who
	// is at the other end of a sandbox with a kernel of its own is slow to wake.
	filesWindow = 2 << 20
)

// windowOf is the window of a call that a request begins.
func windowOf(request frames.Type) int {
	if request == reqUpload || request == reqDownload {
		return filesWindow
	}
	return window
}

// The types of frames. Requests come from the client, replies from the
// supervisor.
const (
	reqExec      frames.Type = iota + 1 // execRequest: run a command
	reqMark                             // nothing: note the processes
	reqKillTree                         // killRequest: end what was born since
	reqUpload                           // text: directory; data frames follow
	reqDownload                         // text: path
	reqKill                             // killRequest: end the exec of this id
	reqCancel                           // nothing: give up the call of this id
	reqData                             // bytes of standard input or of a tar
	reqDataEnd                          // text: empty at the end, else why there is no more
	reqCredit                           // uint32: bytes of output consumed
	reqProcesses                        // nothing: list the processes
	reqOwn                              // ownRequest: give files to a user
	reqPing                             // nothing: say that there is somebody
)

const (
	repStdout frames.Type = iota + 64 // bytes of standard output, of a tar or of a list of processes
	repStderr                         // bytes of standard error
	repCredit                         // uint32: bytes of reqData consumed
	repDone                           // reply: the call is over
	repPong                           // nothing: there is somebody
)

// replyLimit is for what comes from inside.
func replyLimit(frames.Type) (least, most int) { return 0, frames.MaxFiles }

// requestLimit is for what comes from outside.
func requestLimit(t frames.Type) (least, most int) {
	if t == reqData {
		return 0, frames.MaxFiles
	}
	return 0, maxRequest
}

// greetingOf is the greeting of a build.
func greetingOf(build string) frames.Greeting {
	return frames.Greeting{Magic: magic, Version: protocolVersion, Text: build}
}

// checkGreeting compares the greeting of the other side with one's own.
func checkGreeting(own, theirs frames.Greeting) error {
	if theirs == own {
		return nil
	}
	return fmt.Errorf("the guest supervisor does not match: protocol %d build %q here, protocol %d build %q there; both sides must be the same proctor",
		own.Version, own.Text, theirs.Version, theirs.Text)
}
