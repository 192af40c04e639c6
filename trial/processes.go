package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/procfs"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
)

const (
	leftLimit = 10 * time.Second
	// leftOutput bounds the process list that is read, in bytes.
	leftOutput = 1 << 20
	maxNames   = 20
)

// leftScript lists all processes, then its own number.
const leftScript = `cat /proc/[0-9]*/stat 2>/dev/null; echo; echo $$`

// processes are names by process number and start time.
type processes map[string]string

// watcher knows which processes were there before the agent, and ends those that
// came later.
type watcher struct {
	*recorder
	sealed   bool
	sandbox  func() sandbox.Sandbox // of the agent; it may return nil
	trusted  bool                   // what the agent leaves is what the task's author wants to be left
	killed   bool                   // the agent, after its last deadline
	baseline baseline               // when the environment was ready
}

// list is nil when the processes cannot be told: then only a note is missing,
// and what is really wrong shows in what follows. Where the sandbox can list
// them itself, programs inside are not asked.
func (w *watcher) list(ctx context.Context) processes {
	lctx, cancel := context.WithTimeout(ctx, leftLimit)
	defer cancel()
	if lister, ok := sandbox.As[sandbox.ProcessLister](w.sandbox()); ok {
		list, err := lister.Processes(lctx)
		if err == nil {
			return living(list)
		}
		if !errors.Is(err, sandbox.ErrUnsupported) {
			return nil
		}
	}
	out := bounded.NewTail(leftOutput)
	if _, err := w.sandbox().Exec(lctx, sandbox.Command{Shell: leftScript, User: "root", Stdout: out}); err != nil {
		return nil
	}
	return parseProcesses(out.Bytes())
}

// living are the processes that run, but for the first.
func living(list []sandbox.Process) processes {
	found := processes{}
	for _, p := range list {
		if !p.Dead && p.PID != 1 {
			found[fmt.Sprintf("%d %d", p.PID, p.Start)] = p.Name
		}
	}
	return found
}

// supervision says what supervises a sandbox, empty where it does not tell.
func supervision(sb sandbox.Sandbox) string {
	if s, ok := sandbox.As[sandbox.Supervised](sb); ok {
		return s.Supervision()
	}
	return ""
}

// noteLeft notes which processes an agent that ended by itself has left
// running. They stay, since tasks rely on them; but they can write wherever
// the tests do.
func (w *watcher) noteLeft(ctx context.Context) {
	w.notes.AgentLeft = nil
	if w.sandbox() == nil || w.killed || w.trusted || w.baseline.processes == nil {
		return
	}
	left := w.list(ctx)
	maps.DeleteFunc(left, func(id, _ string) bool {
		_, before := w.baseline.processes[id]
		return before
	})
	if len(left) > 0 {
		names := slices.Sorted(maps.Values(left))
		w.notes.AgentLeft = &jobdir.LeftNote{Processes: len(names), Names: names[:min(len(names), maxNames)]}
	}
}

// parseProcesses reads the output of leftScript: what lives, but for the first
// process and the script's own.
func parseProcesses(list []byte) processes {
	// The script's number is the last line; names can hold empty lines too.
	stats, self := list, ""
	if i := bytes.LastIndex(list, []byte("\n\n")); i >= 0 {
		stats, self = list[:i+1], string(list[i+2:])
	}
	parents, found := map[string]string{}, processes{}
	for p := range procfs.All(stats) {
		pid := strconv.Itoa(p.PID)
		parents[pid] = strconv.Itoa(p.PPID)
		if p.State != 'Z' && p.PID != 1 {
			found[fmt.Sprintf("%d %d", p.PID, p.Start)] = p.Name
		}
	}
	// The script with what started it, up to the first process or to one whose
	// parent is outside. What those started besides belongs to them.
	own := map[string]bool{}
	for pid := strings.TrimSpace(self); pid != "" && pid != "0" && pid != "1" && !own[pid]; pid = parents[pid] {
		own[pid] = true
	}
	maps.DeleteFunc(found, func(id, _ string) bool {
		pid, _, _ := strings.Cut(id, " ")
		return own[pid] || own[parents[pid]]
	})
	return found
}

// baseline is the moment when the environment was ready: what is younger is the
// agent's.
type baseline struct {
	mark      sandbox.Mark // only for a sealed verifier
	processes processes    // nil for an agent that is trusted
}

// begin is called before the agent is set up.
func (w *watcher) begin(ctx context.Context, trusted bool) (err error) {
	w.trusted = trusted
	w.notes.SealedVerifier = w.sealed
	if !trusted {
		w.baseline.processes = w.list(ctx)
	}
	if w.sealed {
		w.baseline.mark, err = w.sandbox().Mark(ctx)
	}
	return err
}

// killBeforeSeal ends everything that was started since the environment was
// ready.
func (w *watcher) killBeforeSeal(ctx context.Context) error {
	if !w.sealed || w.sandbox() == nil {
		return nil
	}
	kctx, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	err := w.sandbox().KillTree(kctx, w.baseline.mark, agentGrace)
	w.notes.AgentKilled = &jobdir.KillNote{Reason: "sealed verifier", ProvenGone: err == nil}
	if err != nil {
		w.notes.AgentKilled.Error = err.Error()
		return &unprovenError{err}
	}
	return nil
}
