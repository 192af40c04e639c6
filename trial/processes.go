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
	// leftLimit bounds listing processes.
	leftLimit = 10 * time.Second
	// leftOutput bounds the process list that is read, in bytes.
	leftOutput = 1 << 20
	maxNames   = 20 // that a note lists
)

// leftScript lists all processes, then its own number.
const leftScript = `cat /proc/[0-9]*/stat 2>/dev/null; echo; echo $$`

// processes are names by process number and start time.
type processes map[string]string

// names are sorted.
func (p processes) names() []string { return slices.Sorted(maps.Values(p)) }

// listProcesses returns nil when the processes cannot be listed: then only a note
// is missing, and the cause shows in what follows. Where the sandbox can list them
// itself, no program inside is trusted with it.
func listProcesses(ctx context.Context, sb sandbox.Sandbox) processes {
	lctx, cancel := context.WithTimeout(ctx, leftLimit)
	defer cancel()
	if lister, ok := sandbox.As[sandbox.ProcessLister](sb); ok {
		list, err := lister.Processes(lctx)
		if err == nil {
			return living(list)
		}
		if !errors.Is(err, sandbox.ErrUnsupported) {
			return nil
		}
	}
	out := bounded.NewTail(leftOutput)
	if _, err := sb.Exec(lctx, sandbox.Command{Shell: leftScript, User: "root", Stdout: out}); err != nil {
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

// supervision names the supervisor of a sandbox; empty where it is unknown.
func supervision(sb sandbox.Sandbox) string {
	if s, ok := sandbox.As[sandbox.Supervised](sb); ok {
		return s.Supervision()
	}
	return ""
}

// imageDigest names the content of a sandbox's image; empty where it is unknown.
func imageDigest(sb sandbox.Sandbox) string {
	if s, ok := sandbox.As[sandbox.Imaged](sb); ok {
		return s.ImageDigest()
	}
	return ""
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
	processes processes // nil for an agent that is trusted
	// root: the agent works as root, or it is not known that it does not. Known only for a
	// sealed verifier.
	root bool
}

// left returns which processes were started since and still run, nil when there
// are none or they are unknown.
func (b *baseline) left(ctx context.Context, sb sandbox.Sandbox) *jobdir.LeftNote {
	if sb == nil || b.processes == nil {
		return nil
	}
	left := listProcesses(ctx, sb)
	maps.DeleteFunc(left, func(id, _ string) bool {
		_, before := b.processes[id]
		return before
	})
	if len(left) == 0 {
		return nil
	}
	names := left.names()
	return &jobdir.LeftNote{Processes: len(names), Names: names[:min(len(names), maxNames)]}
}

// killTree ends what a sandbox started since a mark. The error says that it may
// still be running.
func killTree(ctx context.Context, sb sandbox.Sandbox, mark sandbox.Mark, reason string) (*jobdir.KillNote, error) {
	kctx, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	err := sb.KillTree(kctx, mark, agentGrace)
	note := &jobdir.KillNote{Reason: reason, ProvenGone: err == nil}
	if err != nil {
		note.Error = err.Error()
		return note, &unprovenError{err}
	}
	return note, nil
}

// setBaseline notes what runs before the agent.
func (a *attempt) setBaseline(ctx context.Context) {
	a.notes.SealedVerifier = a.r.SealedVerifier
	if !a.trusted || a.r.SealedVerifier {
		a.baseline.processes = listProcesses(ctx, a.sandbox())
	}
	if a.r.SealedVerifier {
		a.baseline.root = a.agentIsRoot(ctx)
	}
}

// noteLeft notes which processes an agent has left running. What it left when it ended by
// itself stays, since tasks rely on it; but it can write wherever the tests do. Where it
// was ended by force, what processes from before it have started is not known to be theirs
// alone: an agent that may can make them start something.
func (a *attempt) noteLeft(ctx context.Context, s *stage) {
	a.notes.AgentLeft = nil
	if a.trusted || s.killed && a.notes.Supervision == sandbox.SupervisionEngine { // there everything was started anew
		return
	}
	a.notes.AgentLeft = a.baseline.left(ctx, a.sandbox())
	if k := a.notes.AgentKilled; s.killed && k != nil && k.ProvenGone && a.notes.AgentLeft != nil {
		k.ProvenGone = false
		k.Error = fmt.Sprintf("processes from before the agent have started others since, which are spared: %d", a.notes.AgentLeft.Processes)
	}
}
