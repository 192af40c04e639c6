package outcome

import (
	"io/fs"
	"path"
	"strings"
)

// Bounds of what is listed of one trial.
const (
	maxLogs     = 10_000 // files and directories
	maxLogDepth = 64     // directories, one in the other
)

// logFiles are where a trial's own logs lie, after those of its agent.
var logFiles = []string{"trial.log", "verifier/test-stdout.txt", "verifier/test-stderr.txt", "exception.txt"}

// agentDir holds the logs of a trial's agent.
const agentDir = "agent"

// trialLogs lists the logs of a trial that are there, by their names below the job's
// directory (outcome mapping, section 7.2): the directory of the agent, which ends with a
// slash, and all files below it, sorted; then the others. Whatever runs in a trial may
// have written there, so no link is followed.
func trialLogs(job fs.FS, dir string) []string {
	logs := agentLogs(job, path.Join(dir, agentDir))
	for _, name := range logFiles {
		if file := ownFile(job, dir, name); file != "" {
			logs = append(logs, file)
		}
	}
	return logs
}

func agentLogs(job fs.FS, dir string) []string {
	if mode, ok := modeOf(job, dir); !ok || !mode.IsDir() {
		return nil
	}
	logs := []string{dir + "/"}
	seen := 0
	_ = fs.WalkDir(job, dir, func(name string, e fs.DirEntry, err error) error {
		seen++
		switch {
		case seen > maxLogs:
			return fs.SkipAll
		case err != nil:
			return skipped(e) // what cannot be read is not there
		case e.IsDir() && strings.Count(name[len(dir):], "/") > maxLogDepth:
			return fs.SkipDir
		case e.Type().IsRegular():
			logs = append(logs, name)
		}
		return nil
	})
	return logs
}

func skipped(e fs.DirEntry) error {
	if e != nil && e.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// ownFile is the name below the job's directory of a file that a trial's directory holds;
// "" where there is none, where a link stands in its way, and for a name that leads out of
// the trial's directory.
func ownFile(job fs.FS, dir, name string) string {
	name = path.Clean(name)
	if name == "." || !fs.ValidPath(name) {
		return ""
	}
	parts := strings.Split(name, "/")
	at := dir
	for i, part := range parts {
		at = path.Join(at, part)
		mode, ok := modeOf(job, at)
		last := i == len(parts)-1
		if !ok || last && !mode.IsRegular() || !last && !mode.IsDir() {
			return ""
		}
	}
	return at
}

// linkFS is a file system that knows links.
type linkFS interface {
	Lstat(name string) (fs.FileInfo, error)
}

// modeOf tells what a name stands for, a link itself where the file system can tell.
func modeOf(job fs.FS, name string) (mode fs.FileMode, ok bool) {
	var info fs.FileInfo
	var err error
	if links, is := job.(linkFS); is {
		info, err = links.Lstat(name)
	} else {
		info, err = fs.Stat(job, name)
	}
	if err != nil {
		return 0, false
	}
	return info.Mode(), true
}

// findLogs lists what a trial's directory holds beside its record.
func (r *TrialRecord) findLogs(job fs.FS, dir string) {
	r.Logs = trialLogs(job, dir)
	r.StdoutFile, r.StderrFile = ownFile(job, dir, r.Stdout), ownFile(job, dir, r.Stderr)
}
