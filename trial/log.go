package trial

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/proctor-run/proctor/internal/bounded"
)

// logFile is a trial.log: bare messages, one a line (Harbor job format,
// section 2.4). Errors of logging do not fail the trial.
type logFile struct {
	mu   sync.Mutex
	f    *os.File
	also io.Writer // the job's log, may be nil
	veil *veil
}

func openLog(path string, also io.Writer, veil *veil) (*logFile, error) {
	f, err := bounded.Truncate(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return nil, err
	}
	return &logFile{f: f, also: also, veil: veil}, nil
}

func (l *logFile) printf(format string, args ...any) {
	line := l.veil.text(strings.TrimRight(fmt.Sprintf(format, args...), "\n")) + "\n"
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.f, line)
	if l.also != nil {
		_, _ = io.WriteString(l.also, line)
	}
}

func (l *logFile) close() error {
	if err := l.f.Close(); err != nil {
		return fmt.Errorf("closing the trial's log: %w", err)
	}
	return nil
}
