package environment

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/sandbox"
)

// Names of the log directories on the host, below [Config.Logs].
const (
	VerifierLogs = "verifier"
	agentLogs    = "agent"
	artifactLogs = "artifacts"
)

// LogDir is a directory of the host that the sandbox sees (section 4.6).
type LogDir struct {
	Name   string // below the directory of the logs
	Inside string // its path in the sandbox
}

// LogDirs are the log directories of every task.
func LogDirs() []LogDir {
	return []LogDir{
		{VerifierLogs, harbor.VerifierLogsDir},
		{agentLogs, harbor.AgentLogsDir},
		{artifactLogs, harbor.ArtifactsDir},
	}
}

// MakeLogDirs makes the log directories below a directory.
func MakeLogDirs(logs string) error {
	for _, d := range LogDirs() {
		path := filepath.Join(logs, d.Name)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		// It is shown to a sandbox: a link would show it something else.
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory but a link: remove it", path)
		}
	}
	return nil
}

// LogMounts are the mounts that show the log directories to a sandbox, where
// the backend has such mounts.
func LogMounts(can sandbox.Capabilities, logs string) []sandbox.Mount {
	if !can.Mounted {
		return nil
	}
	var all []sandbox.Mount
	for _, d := range LogDirs() {
		all = append(all, sandbox.Mount{Source: filepath.Join(logs, d.Name), Target: d.Inside, Guarded: true})
	}
	return all
}

// openLogDirs lets any user of the sandbox write to the log directories. The
// directory around them is not mounted and stays closed.
func (e *Environment) openLogDirs() error {
	for _, d := range LogDirs() {
		if err := os.Chmod(e.LogDir(d.Name), 0o777); err != nil {
			return fmt.Errorf("opening the log directories to the sandbox: %w", err)
		}
	}
	return nil
}

// LogDir is a log directory on the host.
func (e *Environment) LogDir(name string) string { return filepath.Join(e.cfg.Logs, name) }

// emptyLogDirs removes what a sandbox left in the log directories, without
// following its links.
func (e *Environment) emptyLogDirs() error {
	for _, d := range LogDirs() {
		if err := emptyHostDir(e.LogDir(d.Name)); err != nil {
			return err
		}
	}
	return nil
}

func emptyHostDir(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := root.RemoveAll(e.Name()); err != nil {
			return err
		}
	}
	return nil
}
