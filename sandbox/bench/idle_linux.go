package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/internal/procfs"
	"github.com/proctor-run/proctor/sandbox"
)

// idle measures what sandboxes take that have run one command: the proportional
// set size of their processes, and by how much this process has grown. Engines'
// daemons and what the kernel keeps for namespaces and mounts are not counted.
func (t *turn) idle(ctx context.Context) (err error) {
	before, err := processes()
	if err != nil {
		return err
	}
	own, err := ownMemory()
	if err != nil {
		return err
	}
	var made []sandbox.Sandbox
	defer func() {
		for _, sb := range made {
			err = errors.Join(err, destroy(ctx, sb))
		}
	}()
	var ids []string
	for range idleSandboxes {
		sb, err := t.subject.Backend.Create(ctx, t.spec(t.subject))
		if err != nil {
			return err
		}
		made = append(made, sb)
		ids = append(ids, sb.ID())
		if err := command(ctx, sb, doNothing); err != nil {
			return err
		}
	}
	after, err := processes()
	if err != nil {
		return err
	}
	grown, err := ownMemory()
	if err != nil {
		return err
	}
	used := max(0, grown-own)
	found := 0
	for pid := range belonging(after, before, ids) {
		if pss, err := proportional(fmt.Sprintf("/proc/%d", pid)); err == nil { // it may have ended
			used += pss
			found++
		}
	}
	if found < idleSandboxes || used == 0 {
		return fmt.Errorf("%w: of %d sandboxes only %d processes can be looked at from here", errUnable, idleSandboxes, found)
	}
	t.add(opIdle, float64(gibibyte)*idleSandboxes/float64(used))
	return nil
}

// process is a running process as it is seen from outside.
type process struct {
	parent  int
	started uint64
	about   []byte // command line and control groups, in which sandboxes' ids are found
}

func processes() (map[int]process, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	all := map[int]process{}
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // it has ended
		}
		st, err := procfs.ParseStat(text)
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		all[st.PID] = process{parent: st.PPID, started: st.Start, about: append(line, groups...)}
	}
	return all, nil
}

// belonging are the processes that were not there before and that name one of
// the ids, descend from one that does, or from this process.
func belonging(all, before map[int]process, ids []string) map[int]bool {
	mine := map[int]bool{}
	for pid, p := range all {
		old, existed := before[pid]
		if existed && old.started == p.started {
			continue
		}
		mine[pid] = p.parent == os.Getpid()
		for _, id := range ids {
			mine[pid] = mine[pid] || bytes.Contains(p.about, []byte(id))
		}
	}
	for changed := true; changed; {
		changed = false
		for pid, is := range mine {
			if !is && mine[all[pid].parent] {
				mine[pid], changed = true, true
			}
		}
	}
	for pid, is := range mine {
		if !is {
			delete(mine, pid)
		}
	}
	return mine
}

// ownMemory is this process's proportional set size without what the garbage
// collector would give back.
func ownMemory() (int64, error) {
	debug.FreeOSMemory()
	return proportional("/proc/self")
}

// proportional reads the field Pss of smaps_rollup, proc_pid_smaps(5), in bytes.
func proportional(dir string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(dir, "smaps_rollup"))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of a process: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kB, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("reading the memory of a process: %w", err)
			}
			return kB << 10, nil
		}
	}
	return 0, errors.New("reading the memory of a process: the kernel does not say")
}
