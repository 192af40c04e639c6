package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/internal/hostfile"
)

// Groups are the control groups of a sandbox that no other runtime makes.
type Groups struct {
	dirs []groupDir // those of version 1, one for each controller
	// unified is that of version 2: processes are started in it.
	unified *os.File
}

// groupDir is a group, and the caller's own in its hierarchy.
type groupDir struct{ controller, dir, home string }

// CPUPeriod is the period of limits of CPU time in microseconds, the kernel's default.
const CPUPeriod = 100_000

// CPUQuota is the time that a period has for that many processors.
func CPUQuota(cpus float64) int64 { return int64(math.Max(1000, cpus*CPUPeriod)) }

// Wanted says which groups a sandbox has.
type Wanted struct {
	Resources sandbox.Resources
	// Devices: nodes of devices that containers do not have cannot be opened.
	Devices bool
	// Shown: there are groups without a limit too, which count what is used.
	Shown bool
}

func (w Wanted) devices() [][2]string {
	if !w.Devices {
		return nil
	}
	return deviceFiles()
}

// Make makes the groups of a sandbox, with those limits that groups here have.
// What it leaves when it fails is found by the sandbox's id.
func (p *Place) Make(id string, w Wanted) (*Groups, error) {
	root, r := p.root(), w.Resources
	if unified(root) {
		return p.makeUnified(id, w)
	}
	g := &Groups{}
	homes := homeGroups(root)
	memory := limitFile("memory.limit_in_bytes", r.MemoryMB<<20)
	if p.CountsSwap() {
		memory = append(memory, limitFile("memory.memsw.limit_in_bytes", Swapped(r.MemoryMB<<20))...)
	}
	for _, c := range []struct {
		controller string
		files      [][2]string
		wanted     bool // without a limit too
	}{
		{"pids", limitFile("pids.max", r.PIDs), w.Shown},
		{"memory", memory, w.Shown},
		{"cpu", limitFile("cpu.cfs_quota_us", quotaOf(r)), w.Shown},
		{"cpuacct", nil, w.Shown},
		{"devices", w.devices(), false},
	} {
		if !c.wanted && len(c.files) == 0 || !writable(filepath.Join(root, c.controller)) {
			continue // what must be enforced was looked for before
		}
		dir := filepath.Join(root, c.controller, parentGroup, id)
		if err := makeGroup(dir, c.files); err != nil {
			return nil, err
		}
		g.dirs = append(g.dirs, groupDir{c.controller, dir, homes[c.controller]})
	}
	return g, nil
}

func quotaOf(r sandbox.Resources) int64 {
	if r.CPUs <= 0 {
		return 0
	}
	return CPUQuota(r.CPUs)
}

// Swapped is how much memory and swap together a sandbox has with a limit of its
// memory, in the same unit: as much again, as containers of engines have.
func Swapped(memory int64) int64 { return 2 * memory }

// CountsSwap reports whether groups bound what is swapped out.
func (p *Place) CountsSwap() bool {
	root := p.root()
	if !unified(root) {
		return writable(filepath.Join(root, Memory, "memory.memsw.limit_in_bytes"))
	}
	found, _ := filepath.Glob(filepath.Join(root, "*", "memory.swap.max")) // the pattern is correct
	return len(found) > 0
}

// limitFile sets a limit; none without one.
func limitFile(name string, limit int64) [][2]string {
	if limit <= 0 {
		return nil
	}
	return [][2]string{{name, strconv.FormatInt(limit, 10)}}
}

// makeGroup makes a group, with files that are written in their order.
func makeGroup(dir string, files [][2]string) error {
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("making a control group: %w", err)
	}
	for _, f := range files {
		if err := writeGroup(dir, f[0], f[1]); err != nil {
			return err
		}
	}
	return nil
}

// writeGroup writes a file of a group, which exists.
func writeGroup(dir, name, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("setting a control group's %s: %w", name, err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("setting a control group's %s to %q: %w", name, text, err)
	}
	return nil
}

// makeUnified makes the one group of version 2.
func (p *Place) makeUnified(id string, w Wanted) (*Groups, error) {
	parent := filepath.Join(p.dir, parentGroup)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("making a control group: %w", err)
	}
	limits, err := p.unifiedLimits(w)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(parent, id)
	if err := makeGroup(dir, limits); err != nil {
		return nil, err
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("opening a control group: %w", err)
	}
	if w.Devices && guardLoads() {
		if err := attachGuard(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return &Groups{unified: f}, nil
}

// unifiedLimits are the files of a group of version 2. The groups above pass the
// controllers on that they need, and with Shown those that count what is used.
func (p *Place) unifiedLimits(w Wanted) ([][2]string, error) {
	var files [][2]string
	for _, c := range []struct {
		controller string
		limits     func(sandbox.Resources) [][2]string
	}{{Processes, unifiedProcesses}, {Memory, p.unifiedMemory}, {Processors, unifiedQuota}} {
		limited := len(c.limits(w.Resources)) > 0
		if !p.Limits(c.controller) || !limited && !w.Shown {
			continue
		}
		for _, dir := range []string{p.dir, filepath.Join(p.dir, parentGroup)} {
			if err := passOn(dir, c.controller); err != nil {
				return nil, err
			}
		}
		files = append(files, c.limits(w.Resources)...)
	}
	return files, nil
}

// passOn has the groups below one of version 2 have a controller.
func passOn(dir, controller string) error {
	return writeGroup(dir, "cgroup.subtree_control", "+"+controller)
}

func unifiedProcesses(r sandbox.Resources) [][2]string { return limitFile("pids.max", r.PIDs) }

// unifiedMemory depends on which files there are, once the controller was passed on.
func (p *Place) unifiedMemory(r sandbox.Resources) [][2]string {
	files := limitFile("memory.max", r.MemoryMB<<20)
	if p.CountsSwap() {
		files = append(files, limitFile("memory.swap.max", r.MemoryMB<<20)...)
	}
	return files
}

func unifiedQuota(r sandbox.Resources) [][2]string {
	if quota := quotaOf(r); quota > 0 {
		return [][2]string{{"cpu.max", fmt.Sprintf("%d %d", quota, CPUPeriod)}}
	}
	return nil
}

// Enter puts the calling thread into the groups of version 1, so that what it
// starts is born there. That is much cheaper than to move a process: the
// kernel has to keep all others from forking meanwhile, and waits for it.
// Without groups it does nothing.
func (g *Groups) Enter() error {
	if g == nil {
		return nil
	}
	for _, d := range g.dirs {
		if err := writeGroup(d.dir, "tasks", "0"); err != nil {
			return err
		}
	}
	return nil
}

// Leave brings the calling thread back to where the process is. A thread that
// cannot leave does not matter: it ends with the sandbox.
func (g *Groups) Leave() {
	if g == nil {
		return
	}
	for _, d := range g.dirs {
		if d.home != "" {
			_ = writeGroup(d.home, "tasks", "0")
		}
	}
}

// homeGroups are the groups of version 1 that this process is in, by controller
// (cgroups(7), /proc/pid/cgroup).
func homeGroups(root string) map[string]string {
	homes := map[string]string{}
	for line := range strings.Lines(hostfile.Small("/proc/self/cgroup")) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		for c := range strings.SplitSeq(fields[1], ",") {
			homes[c] = filepath.Join(root, c, fields[2])
		}
	}
	return homes
}

// Unified reports whether it is one group of version 2.
func (g *Groups) Unified() bool { return g != nil && g.unified != nil }

// StartIn has a command started in the group of version 2; those of version 1 belong
// to the thread that starts it, see Enter.
func (g *Groups) StartIn(cmd *exec.Cmd) {
	if g.Unified() {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(g.unified.Fd())
	}
}

// Close closes what StartIn uses.
func (g *Groups) Close() {
	if g.Unified() {
		_ = g.unified.Close() // nothing was written
	}
}
