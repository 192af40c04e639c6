// Package verify runs a task's tests in a sandbox and reads the rewards that
// they leave. [Run] is the one call.
//
// The tests' exit code decides nothing: only the reward file counts (Harbor
// task format, sections 6.2 and 6.3).
package verify

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/sandbox"
)

// Paths in the sandbox.
const (
	TestsDir = "/tests"
	LogDir   = "/logs/verifier"
)

// OutputFile is the name of the tests' output in the log directory.
const OutputFile = "test-stdout.txt"

// Spec says what to run and where its traces go.
type Spec struct {
	// TestDirs on the host are uploaded to TestsDir in this order, so that
	// files of later ones replace files of earlier ones. Empty when the image
	// has the tests already.
	TestDirs []string
	// Script is the tests' entry, relative to TestsDir.
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
}

// Result of a verification.
type Result struct {
	// Rewards may be null without an error, see reward.Rewards.
	Rewards *reward.Rewards
	// ExitCode of the tests, which decides nothing.
	ExitCode int
	// OutputCut is how many bytes of output were dropped.
	OutputCut int64
	Evidence  Evidence
}

// Error is a failure of the verification with the exception type that results
// record for it.
type Error struct {
	Type, Message string
	Err           error // the cause, may be nil
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorType is the name under which results record the error.
func (e *Error) ErrorType() string { return e.Type }

// Run uploads the tests, runs them and reads the rewards. It obeys ctx; the
// caller has made sure that no agent is running any more. The result's
// Evidence is filled also when there is an error.
func Run(ctx context.Context, sb sandbox.Sandbox, spec Spec) (Result, error) {
	var res Result
	if spec.Mounted {
		res.Evidence.Before = findRewardFiles(spec.LogDir)
	}
	if err := uploadTests(ctx, sb, spec); err != nil {
		return res, err
	}
	if err := runTests(ctx, sb, spec, &res); err != nil {
		return res, err
	}
	if !spec.Mounted {
		if err := download(ctx, sb, spec.LogDir); err != nil {
			return res, err
		}
	}
	res.Evidence.After = findRewardFiles(spec.LogDir)
	rewards, err := reward.Read(spec.LogDir)
	res.Rewards = rewards
	return res, err
}

func download(ctx context.Context, sb sandbox.Sandbox, logDir string) error {
	root, err := os.OpenRoot(logDir)
	if err != nil {
		return err
	}
	defer root.Close()
	err = sandbox.DownloadDir(ctx, sb, LogDir, root, sandbox.DefaultDownloadLimits)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return &Error{Type: "DownloadVerifierDirError", Message: "Failed to download verifier directory from environment", Err: err}
}

func uploadTests(ctx context.Context, sb sandbox.Sandbox, spec Spec) error {
	for _, dir := range spec.TestDirs {
		if err := sandbox.UploadDir(ctx, sb, dir, TestsDir, spec.Script); err != nil {
			if ctx.Err() != nil {
				return err
			}
			return &Error{Type: "AddTestsDirError", Message: "Failed to add tests directory to environment.", Err: err}
		}
	}
	return nil
}

func runTests(ctx context.Context, sb sandbox.Sandbox, spec Spec, res *Result) error {
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
		if _, err := sb.Exec(ctx, sandbox.Command{Argv: []string{"chmod", "+x", path.Join(TestsDir, spec.Script)}, User: "root"}); err != nil {
			return err
		}
	}
	status, err := sb.Exec(ctx, sandbox.Command{
		Shell:  "(" + path.Join(TestsDir, spec.Script) + ")",
		Env:    env,
		User:   spec.User,
		Stdout: out,
	})
	res.ExitCode, res.OutputCut = status.Code, out.Cut()
	if closeErr := out.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("keeping the tests' output: %w", closeErr)
	}
	return err
}

// Evidence is what the host saw of the reward files, so that tampering is
// visible. Nothing is judged here.
type Evidence struct {
	// Before the tests started. A file there was not written by them.
	Before []RewardFile `json:"before"`
	// After the tests ended.
	After []RewardFile `json:"after"`
}

// RewardFile describes a reward file without following links.
type RewardFile struct {
	Name string `json:"name"`
	// Kind is "file", "link" or "other".
	Kind  string `json:"kind"`
	Bytes int64  `json:"bytes"`
	// Links counts the names of the file; UID owns it. Both are -1 where the
	// host's file system does not say.
	Links int64 `json:"links"`
	UID   int64 `json:"uid"`
	// ModTime is in nanoseconds since 1970.
	ModTime int64 `json:"mtime_ns"`
}

func findRewardFiles(dir string) []RewardFile {
	found := []RewardFile{}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return found
	}
	defer root.Close()
	for _, name := range []string{"reward.json", "reward.txt"} {
		info, err := root.Lstat(name)
		if err != nil {
			continue
		}
		f := RewardFile{Name: name, Kind: kindOf(info.Mode()), Bytes: info.Size(), ModTime: info.ModTime().UnixNano()}
		f.Links, f.UID = ownership(info)
		found = append(found, f)
	}
	return found
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "file"
	case mode&fs.ModeSymlink != 0:
		return "link"
	}
	return "other"
}
