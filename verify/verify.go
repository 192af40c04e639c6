// Package verify runs a task's tests in a sandbox and reads the rewards that
// they leave. [Run] is the one call.
//
// The tests' exit code decides nothing: only the reward file counts (Harbor
// task format, sections 6.2 and 6.3).
package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/taskpath"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/sandbox"
)

// LogDir is where a verifier writes in the sandbox.
const LogDir = taskpath.VerifierLogs

// OutputFile is the name of the tests' output in the log directory.
const OutputFile = "test-stdout.txt"

// Spec says what to run and where its traces go.
type Spec struct {
	// TestDirs on the host are uploaded to /tests in this order, so that
	// files of later ones replace files of earlier ones. Empty when the image
	// has the tests already.
	TestDirs []string
	// Script is the tests' entry, relative to /tests.
	Script string
	// Env gives the tests' variables, KEY=VALUE, later entries win. It is
	// called just before the tests run, so that a missing variable is an error
	// of the verification. Nil means none.
	Env func() ([]string, error)
	// User runs the tests; empty means the sandbox's default.
	User string
	// LogDir is the host directory for the tests' files. When Mounted is set
	// it is what the sandbox sees as LogDir, otherwise it is filled by a
	// download.
	LogDir  string
	Mounted bool
	// OutputLimit bounds the kept output of the tests, in bytes.
	OutputLimit int64
	// Redact returns a writer to w that leaves out the values of secrets, and writes
	// the rest of what it keeps back when it is closed. OutputFile is written through
	// it; nil changes nothing.
	Redact func(w io.Writer) io.WriteCloser
	// Prepare is called when the evidence of what was there before has been
	// taken, and before anything is uploaded; nil for nothing.
	Prepare func(context.Context) error
	// Sealed closes the reward channel to everyone but the tests: LogDir is
	// emptied and given to their user, what they leave running is killed, and
	// reward files that others may have written are refused as a Tampered
	// Error. The caller has killed everything that could still write.
	Sealed bool
	// Now is the clock of the evidence; nil leaves times out.
	Now func() time.Time
}

// Result of a verification.
type Result struct {
	// Rewards may be null without an error, see reward.Rewards.
	Rewards *reward.Rewards
	// ExitCode of the tests, which decides nothing.
	ExitCode int
	// NotStarted says why the tests could not be started; empty when they were.
	// Then there is no OutputFile.
	NotStarted string
	// OutputCut is how many bytes of output were dropped.
	OutputCut int64
	Evidence  reward.Evidence
}

// Run uploads the tests, runs them and reads the rewards. It obeys ctx; the
// caller has made sure that no agent is running any more. The result's
// Evidence is filled also when there is an error.
func Run(ctx context.Context, sb sandbox.Sandbox, spec Spec) (Result, error) {
	res := Result{Evidence: reward.Evidence{Sealed: spec.Sealed, Before: []reward.File{}, After: []reward.File{}}}
	if spec.Mounted || spec.Sealed {
		before, err := look(ctx, sb, spec)
		if err != nil {
			return res, err
		}
		res.Evidence.Before = before
	}
	if spec.Sealed && len(res.Evidence.Before) > 0 {
		return res, tamperedf("%s existed before the verifier started", res.Evidence.Before[0].Name)
	}
	if spec.Prepare != nil {
		if err := spec.Prepare(ctx); err != nil {
			return res, err
		}
	}
	if err := uploadTests(ctx, sb, spec); err != nil {
		return res, err
	}
	work := runOpen
	if spec.Sealed {
		work = runSealed
	}
	err := work(ctx, sb, spec, &res)
	return res, err
}

func runOpen(ctx context.Context, sb sandbox.Sandbox, spec Spec, res *Result) error {
	if err := runTests(ctx, sb, spec, res, nil); err != nil {
		return err
	}
	if !spec.Mounted {
		if err := download(ctx, sb, spec.LogDir); err != nil {
			return err
		}
	} else {
		sandbox.Own(ctx, sb, LogDir)
	}
	res.Evidence.After = RewardFiles(spec.LogDir)
	return res.read(spec.LogDir)
}

func (r *Result) read(dir string) (err error) {
	r.Rewards, err = reward.Read(dir)
	return err
}

func runSealed(ctx context.Context, sb sandbox.Sandbox, spec Spec, res *Result) error {
	s := &seal{sb: sb, spec: spec}
	if err := s.empty(ctx); err != nil {
		return err
	}
	defer s.open(ctx)
	if err := runTests(ctx, sb, spec, res, s.begin); err != nil {
		return err
	}
	ended, err := look(ctx, sb, spec)
	if err != nil {
		return err
	}
	if res.Evidence.After, err = s.end(ctx, ended); err != nil {
		return err
	}
	if !spec.Mounted {
		if err := download(ctx, sb, spec.LogDir); err != nil {
			return err
		}
	} else {
		sandbox.Own(ctx, sb, LogDir)
	}
	if err := res.read(spec.LogDir); err != nil {
		return err
	}
	sameContent := func(a, b reward.File) bool { return a.Name == b.Name && a.SHA256 == b.SHA256 }
	if !slices.EqualFunc(res.Evidence.After, RewardFiles(spec.LogDir), sameContent) {
		res.Rewards = nil
		return tamperedf("a reward file was changed while it was read")
	}
	return nil
}

func download(ctx context.Context, sb sandbox.Sandbox, logDir string) error {
	root, err := os.OpenRoot(logDir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	err = sandbox.DownloadDir(ctx, sb, LogDir, root, sandbox.DefaultDownloadLimits)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return &exception.Error{Type: exception.DownloadVerifierDirError, Message: "Failed to download verifier directory from environment", Err: err}
}

func uploadTests(ctx context.Context, sb sandbox.Sandbox, spec Spec) error {
	for _, dir := range spec.TestDirs {
		if err := sandbox.UploadDir(ctx, sb, dir, taskpath.Tests, spec.Script); err != nil {
			if ctx.Err() != nil {
				return err
			}
			return &exception.Error{Type: exception.AddTestsDirError, Message: "Failed to add tests directory to environment.", Err: err}
		}
	}
	return nil
}

// runTests runs the tests; begin, when there is one, is called just before.
func runTests(ctx context.Context, sb sandbox.Sandbox, spec Spec, res *Result, begin func(context.Context) error) error {
	var env []string
	if spec.Env != nil {
		var err error
		if env, err = spec.Env(); err != nil {
			return err
		}
	}
	out, err := bounded.Create(spec.LogDir, OutputFile, spec.OutputLimit)
	if err != nil {
		return fmt.Errorf("keeping the tests' output: %w", err)
	}
	if len(spec.TestDirs) == 0 {
		// The upload makes the script executable; without one it is done here.
		if _, err := sb.Exec(ctx, sandbox.Command{Argv: []string{"chmod", "+x", path.Join(taskpath.Tests, spec.Script)}, User: "root"}); err != nil {
			return errors.Join(err, discard(out))
		}
	}
	if begin != nil {
		if err := begin(ctx); err != nil {
			return errors.Join(err, discard(out))
		}
	}
	stdout, flush := spec.output(out)
	res.Evidence.Started = nanoseconds(spec.Now)
	status, err := sb.Exec(ctx, sandbox.Command{
		Shell:  "(" + path.Join(taskpath.Tests, spec.Script) + ")",
		Env:    env,
		User:   spec.User,
		Stdout: stdout,
	})
	res.Evidence.Ended = nanoseconds(spec.Now)
	err = errors.Join(err, flush())
	res.ExitCode, res.OutputCut = status.Code, out.Cut()
	if status.NotStarted || err != nil && ctx.Err() == nil && out.Written() == 0 {
		var discardErr error
		res.NotStarted, discardErr = out.Discard()
		return errors.Join(err, discardErr)
	}
	if closeErr := out.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("keeping the tests' output: %w", closeErr)
	}
	return err
}

// output is where the tests print to; flush writes the rest.
func (s *Spec) output(file io.Writer) (w io.Writer, flush func() error) {
	if s.Redact == nil {
		return file, func() error { return nil }
	}
	through := s.Redact(file)
	return through, through.Close
}

// discard removes the output file of tests that did not run.
func discard(out *bounded.File) error {
	_, err := out.Discard()
	return err
}
