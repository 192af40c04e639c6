package taskcheck

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/jobdir"
)

// maxOutput bounds what is read of a file that a trial left, in bytes.
const maxOutput = 1 << 20

// Gather reads what a trial left in its directory beside its result. What is
// not there is empty: the trial may have ended before.
func Gather(dir string, role Role, result *jobdir.TrialResult) (Trial, error) {
	t := Trial{Role: role, Name: result.TrialName, Result: result}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return t, fmt.Errorf("reading trial %q: %w", result.TrialName, err)
	}
	defer func() { _ = root.Close() }()
	if role.Kind == KindChannel {
		t.Output, err = readAll(root, result, "agent/command.txt")
	} else {
		t.ExitCode, err = readAll(root, result, "agent/exit-code.txt")
		t.ExitCode = strings.TrimSpace(t.ExitCode)
	}
	if err != nil {
		return t, fmt.Errorf("reading trial %q: %w", result.TrialName, err)
	}
	notes, err := jobdir.ReadNotes(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return t, fmt.Errorf("reading trial %q: %w", result.TrialName, err)
	}
	t.Suspicions = noticed(&notes) // without notes, nothing
	return t, nil
}

func noticed(n *jobdir.Notes) []string {
	list := n.Suspicions()
	if n.AgentLeft != nil && n.AgentLeft.Processes > 0 {
		list = append(list, fmt.Sprintf("processes that the agent left running: %d", n.AgentLeft.Processes))
	}
	return list
}

// readAll reads a file of the agent; a trial of several steps has one for each.
func readAll(root *os.Root, result *jobdir.TrialResult, name string) (string, error) {
	places := []string{name}
	for _, s := range result.StepResults {
		places = append(places, path.Join("steps", s.StepName, name))
	}
	var b strings.Builder
	for _, place := range places {
		data, err := readFile(root, place)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		b.Write(data)
	}
	return b.String(), nil
}

func readFile(root *os.Root, name string) ([]byte, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a regular file", name)
	}
	f, err := bounded.OpenAt(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxOutput))
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", name, err)
	}
	return data, nil
}
