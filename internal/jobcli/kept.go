package jobcli

import (
	"fmt"
	"sync"

	"github.com/proctor-run/proctor/internal/console"
)

// kept are the sandboxes of a run that were left for people, with how to get in.
type kept struct {
	mu    sync.Mutex
	lines []string
}

func (k *kept) add(trial, hint string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lines = append(k.lines, fmt.Sprintf("kept the sandbox of %s: %s", console.Clean(trial), console.Clean(hint)))
}

// print says what was kept, when nothing is shown of the run any more.
func (k *kept) print(p *Program) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, line := range k.lines {
		_, _ = fmt.Fprintf(p.Stderr, "%s: %s\n", p.Name, line)
	}
}
