package guest

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox/internal/entrypoint"
)

// wait is what the program does in entrypoint.WaitMode. It ends by a signal only.
func wait(stderr io.Writer) int {
	if err := os.WriteFile("/proc/self/comm", []byte(entrypoint.WaitName), 0); err != nil {
		// Without the name it only takes longer to see that it waits.
		_, _ = fmt.Fprintln(stderr, "proctor guest: naming the process:", err)
	}
	hide()
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for {
		for pid, err := 1, error(nil); pid > 0 || err == syscall.EINTR; { //nolint:errorlint // wait4 wraps nothing
			pid, err = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
		<-children
	}
}

// hide keeps what runs as the same user from tracing this process, and from its memory
// and descriptors in /proc.
func hide() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
