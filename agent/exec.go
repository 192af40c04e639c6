package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
)

// ExitError reports that a command of the agent exited non-zero.
type ExitError struct {
	Command string
	Code    int
	// Output is the end of what the command printed, at most 1,000 bytes.
	Output string
}

// Error has the three lines that Harbor writes (Harbor agent format, section 3.1).
func (e *ExitError) Error() string {
	out := e.Output
	if out == "" {
		out = "None"
	}
	return fmt.Sprintf("Command failed (exit %d): %s\nstdout: %s\nstderr: None", e.Code, e.Command, out)
}

// ErrorType is the exception type in results.
func (e *ExitError) ErrorType() string { return exception.NonZeroAgentExitCodeError }

// errorOutputLimit bounds the output quoted in an ExitError, in bytes.
const errorOutputLimit = 1000

// WriteLog writes a file of an agent's log directory, whole or not at all, without the
// values of secrets, see [Env]; redact may be nil. The directory may be one that the
// sandbox writes to as well: no link in it is followed.
func WriteLog(dir, name string, data []byte, redact func(w io.Writer) io.WriteCloser) error {
	if redact != nil {
		var kept bytes.Buffer
		w := redact(&kept)
		_, err := w.Write(data)
		if err := errors.Join(err, w.Close()); err != nil {
			return fmt.Errorf("redacting %s: %w", name, err)
		}
		data = kept.Bytes()
	}
	return atomicfile.WriteIn(dir, name, data, 0o644)
}

// Exec runs a command of the agent and keeps its output, within OutputLimit, as a
// file of LogDir. The exit code is the caller's business.
func (e Env) Exec(ctx context.Context, log string, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	return e.exec(ctx, log, cmd, nil)
}

// Check runs a command as Exec does. A non-zero exit is an [*ExitError].
func (e Env) Check(ctx context.Context, log string, cmd sandbox.Command) error {
	tail := bounded.NewTail(errorOutputLimit)
	status, err := e.exec(ctx, log, cmd, tail)
	if err == nil && status.Code != 0 {
		return &ExitError{Command: cmp.Or(cmd.Shell, strings.Join(cmd.Argv, " ")), Code: status.Code, Output: tail.String()}
	}
	return err
}

// exec copies the end of the output to tail, too, when that is given.
func (e Env) exec(ctx context.Context, log string, cmd sandbox.Command, tail *bounded.Tail) (sandbox.ExitStatus, error) {
	out, err := bounded.Create(e.LogDir, log, e.OutputLimit)
	if err != nil {
		return sandbox.ExitStatus{}, fmt.Errorf("keeping the agent's output: %w", err)
	}
	cmd.Stdout = out
	if tail != nil {
		cmd.Stdout = tee{out, tail}
	}
	flush := func() error { return nil }
	if e.Redact != nil {
		through := e.Redact(cmd.Stdout)
		cmd.Stdout, flush = through, through.Close
	}
	status, err := e.Sandbox.Exec(ctx, cmd)
	err = errors.Join(err, flush())
	if status.NotStarted || err != nil && ctx.Err() == nil && out.Written() == 0 { // then there is no output of it
		why, discardErr := out.Discard()
		if e.Warn != nil && status.NotStarted {
			e.Warn("a command of the agent could not be started: %s", strings.TrimSpace(why))
		}
		return status, errors.Join(err, discardErr)
	}
	if closeErr := out.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("keeping the agent's output: %w", closeErr)
	}
	return status, err
}

// tee writes to both; neither ever fails.
type tee struct {
	file *bounded.File
	tail *bounded.Tail
}

func (t tee) Write(p []byte) (int, error) {
	_, _ = t.tail.Write(p)
	return t.file.Write(p)
}
