package external

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
)

const (
	// maxOutput is what is kept of a command's output in memory, in bytes.
	maxOutput = 1 << 20
	// maxFile is the size of the largest file that is read or written, in bytes.
	maxFile = 5 << 20
	// fileLimit bounds the time for one file: a pipe may stand in its place.
	fileLimit = time.Minute
	// maxBroken is how many calls in a row the sandbox may fail to carry out. A few may
	// be due to what was asked for.
	maxBroken = 4
)

// box works in the sandbox as the agent's user.
type box struct {
	sb   sandbox.Sandbox
	user string
}

// refused is an error that is told to the agent, and harms nothing else.
type refused struct{ why string }

func (r *refused) Error() string { return r.why }

func refusedf(format string, args ...any) error { return &refused{fmt.Sprintf(format, args...)} }

// exec runs a command and returns the beginning and the end of its output.
func (b box) exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, string, error) {
	if err := checkCommand(cmd); err != nil {
		return sandbox.ExitStatus{}, "", err
	}
	out := &ends{tail: bounded.NewTail(maxOutput / 2)}
	cmd.User, cmd.Stdout = b.user, out
	status, err := b.sb.Exec(ctx, cmd)
	return status, out.String(), err
}

// checkCommand refuses what no system can run.
func checkCommand(cmd sandbox.Command) error {
	for _, text := range slices.Concat([]string{cmd.Shell, cmd.Dir}, cmd.Argv, cmd.Env) {
		if strings.ContainsRune(text, 0) {
			return refusedf("commands, directories and variables cannot hold a zero byte")
		}
	}
	return nil
}

// workdir is the directory in which the agent's commands begin; empty where the sandbox
// cannot tell.
func (b box) workdir(ctx context.Context) (string, error) {
	status, out, err := b.exec(ctx, sandbox.Command{Shell: "pwd", Timeout: fileLimit})
	if err != nil {
		return "", fmt.Errorf("looking for the working directory: %w", err)
	}
	dir := strings.TrimSuffix(out, "\n")
	if status.Code != 0 || !path.IsAbs(dir) || strings.ContainsRune(dir, '\n') {
		return "", nil
	}
	return dir, nil
}

// read returns the content of a file.
func (b box) read(ctx context.Context, name string) ([]byte, error) {
	if err := checkPath(name); err != nil {
		return nil, err
	}
	var content bytes.Buffer
	said := bounded.NewTail(errorOutput)
	status, err := b.sb.Exec(ctx, sandbox.Command{
		Argv: []string{"head", "-c", strconv.Itoa(maxFile + 1), "--", name}, User: b.user,
		Stdout: &content, Stderr: said, Timeout: fileLimit,
	})
	if status.NotStarted { // its output says why
		_, _ = said.Write(content.Bytes()[:min(content.Len(), errorOutput)])
	}
	if err := outcome(status, said, err, "reading", name); err != nil {
		return nil, err
	}
	if content.Len() > maxFile {
		return nil, refusedf("reading %q: it has more than %d bytes", name, maxFile)
	}
	return content.Bytes(), nil
}

// writeScript makes the directory of $1, writes the file, and gives it the mode $2.
const writeScript = `case $1 in */*) mkdir -p -- "${1%/*}/" || exit ;; esac
cat > "$1" && if [ -n "$2" ]; then chmod -- "$2" "$1"; fi`

var fileMode = regexp.MustCompile(`^0?[0-7]{3}$`)

// write writes a file, whose directory is made where there is none. The mode is octal;
// empty is that of a new file, or of the one that is there.
func (b box) write(ctx context.Context, name string, content []byte, mode string) error {
	if err := checkPath(name); err != nil {
		return err
	}
	switch {
	case len(content) > maxFile:
		return refusedf("writing %q: it would have more than %d bytes", name, maxFile)
	case mode != "" && !fileMode.MatchString(mode):
		return refusedf("writing %q: the mode is %.20q, want one such as 0644", name, mode)
	}
	said := bounded.NewTail(errorOutput)
	status, err := b.sb.Exec(ctx, sandbox.Command{
		Argv: []string{"sh", "-c", writeScript, "sh", name, mode}, User: b.user,
		Stdin: bytes.NewReader(content), Stdout: said, Timeout: fileLimit,
	})
	return outcome(status, said, err, "writing", name)
}

func checkPath(name string) error {
	if name == "" || strings.ContainsRune(name, 0) {
		return refusedf("%q is not a path", name)
	}
	return nil
}

func outcome(status sandbox.ExitStatus, said *bounded.Tail, err error, doing, name string) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s %q in the sandbox: %w", doing, name, err)
	case status.TimedOut:
		return refusedf("%s %q: it took longer than %s", doing, name, fileLimit)
	case status.Code != 0:
		return refusedf("%s %q: %s", doing, name, strings.TrimSpace(strings.ToValidUTF8(said.String(), "\ufffd")))
	}
	return nil
}

// health counts the calls in a row that the sandbox could not carry out.
type health struct{ broken atomic.Int32 }

// note reports whether the sandbox has to be given up because of an error.
func (h *health) note(ctx context.Context, err error) bool {
	if _, told := errors.AsType[*refused](err); err == nil || told || ctx.Err() != nil {
		if err == nil {
			h.broken.Store(0)
		}
		return false
	}
	return h.broken.Add(1) >= maxBroken
}

// ends keeps the beginning and the end of what is written to it.
type ends struct {
	head []byte
	tail *bounded.Tail
}

func (e *ends) Write(p []byte) (int, error) {
	n := len(p)
	if room := maxOutput/2 - len(e.head); room > 0 {
		room = min(room, len(p))
		e.head, p = append(e.head, p[:room]...), p[room:]
	}
	_, _ = e.tail.Write(p)
	return n, nil
}

// String has a line that marks what was dropped. What is no UTF-8 is replaced.
func (e *ends) String() string {
	text := string(e.head)
	if e.tail.Dropped() > 0 {
		text += "\n"
	}
	return strings.ToValidUTF8(text+e.tail.String(), "\ufffd")
}
