package report

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/proctor-run/proctor/internal/bounded"
)

// LogTail is the end of a log file.
type LogTail struct {
	File  string   `json:"file"` // below the trial's directory, with slashes
	Lines []string `json:"lines"`
	Cut   bool     `json:"cut"` // there is more before it
}

// Limits of what is shown of a trial's logs.
const (
	maxTailBytes = 64 << 10
	maxTailFiles = 20
)

// tails reads the ends of the logs: the trial's own first, then those of agent
// and verifier, of every step. What the agent left may be anything.
func tails(root *os.Root, lines int) []LogTail {
	logs := []LogTail{}
	_ = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fs.SkipDir
		case d.IsDir() && path != "." && !mayHoldLogs(path):
			return fs.SkipDir
		case !d.Type().IsRegular() || !isLog(path):
			return nil
		case len(logs) >= maxTailFiles:
			return fs.SkipAll
		}
		if t, ok := tailOf(root, path, lines); ok {
			logs = append(logs, t)
		}
		return nil
	})
	return logs
}

func mayHoldLogs(path string) bool {
	parts := strings.Split(path, "/")
	if parts[0] == "steps" {
		parts = parts[min(2, len(parts)):]
	}
	return len(parts) == 0 || len(parts) == 1 && (parts[0] == "agent" || parts[0] == "verifier")
}

func isLog(path string) bool {
	switch filepath.Ext(path) {
	case ".log", ".txt":
	default:
		return false
	}
	name := filepath.Base(path)
	return name != "reward.txt" && name != "exception.txt"
}

func tailOf(root *os.Root, path string, lines int) (LogTail, bool) {
	f, err := bounded.OpenAt(root, path)
	if err != nil {
		return LogTail{}, false
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 || lines == 0 {
		return LogTail{}, false
	}
	from := max(info.Size()-maxTailBytes, 0)
	data, err := io.ReadAll(io.NewSectionReader(f, from, maxTailBytes))
	if err != nil {
		return LogTail{}, false
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	kept := all[max(len(all)-lines, 0):]
	return LogTail{File: path, Lines: kept, Cut: from > 0 || len(kept) < len(all)}, true
}
