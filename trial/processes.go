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
	mark      sandbox.Mark // only for a sealed verifier
	processes processes    // nil for an agent that is trusted
}

// takeBaseline is called before the agent is set up.
func takeBaseline(ctx context.Context, sb sandbox.Sandbox, trusted, sealed bool) (b baseline, err error) {
	if !trusted {
		b.processes = listProcesses(ctx, sb)
	}
	if sealed {
		b.mark, err = sb.Mark(ctx)
	}
	return b, err
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
	names := slices.Sorted(maps.Values(left))
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
func (a *attempt) setBaseline(ctx context.Context) (err error) {
	a.notes.SealedVerifier = a.r.SealedVerifier
	a.baseline, err = takeBaseline(ctx, a.sandbox(), a.trusted, a.r.SealedVerifier)
	return err
}

// noteLeft notes which processes an agent that ended by itself has left
// running. They stay, since tasks rely on them; but they can write wherever
// the tests do.
func (a *attempt) noteLeft(ctx context.Context, s *stage) {
	a.notes.AgentLeft = nil
	if !s.killed {
		a.notes.AgentLeft = a.baseline.left(ctx, a.sandbox())
	}
}

// killBeforeSeal ends everything that was started since the environment was
// ready, for a sealed verifier.
func (a *attempt) killBeforeSeal(ctx context.Context) (err error) {
	if sb := a.sandbox(); a.r.SealedVerifier && sb != nil {
		a.notes.AgentKilled, err = killTree(ctx, sb, a.baseline.mark, "sealed verifier")
	}
	return err
}
