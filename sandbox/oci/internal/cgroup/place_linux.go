package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/sandbox/oci/internal/hostfile"
)

// The controllers whose limits sandboxes have.
const (
	Processors = "cpu"
	Memory     = "memory"
	Processes  = "pids"
)

// ownGroup holds this process where it had a group to itself.
const ownGroup = "self"

// Place is where groups of sandboxes are made: below the uppermost one, or below a
// group that an ordinary user was given. A nil one is nowhere.
type Place struct {
	// dir is where the file systems of groups are mounted, or the directory of a
	// group of version 2.
	dir string
	// path is that of dir in its hierarchy.
	path string
	have []string // controllers
}

// Find finds the place of this machine's root, or that of an ordinary user: with version
// 2 the group that this process is in, if the user may change it and it holds nothing
// else (cgroups(7), "Delegation"; systemd-run --user --scope makes such groups). The
// process goes one level down then, because only groups without processes have groups
// with limits. Where there is no place it returns nil.
func Find(root bool) *Place {
	var p *Place
	if root {
		p = uppermost()
	} else {
		p = given(Root)
	}
	if p == nil || len(p.have) == 0 {
		return nil
	}
	return p
}

// Limits reports whether groups of sandboxes have a controller.
func (p *Place) Limits(controller string) bool {
	return p != nil && slices.Contains(p.have, controller)
}

// Path is the group of a sandbox in its hierarchy.
func (p *Place) Path(id string) string { return filepath.Join("/", p.path, parentGroup, id) }

func (p *Place) root() string {
	if p == nil {
		return Root
	}
	return p.dir
}

// uppermost is root's place. It has both controllers that what tasks ask for needs, or
// is none.
func uppermost() *Place {
	p := &Place{dir: Root}
	for _, name := range []string{Processors, Memory, Processes} {
		if can := writable(filepath.Join(Root, name)); unified(Root) && passes(Root, name) || !unified(Root) && can {
			p.have = append(p.have, name)
		}
	}
	if !p.Limits(Processors) || !p.Limits(Memory) {
		return nil
	}
	return p
}

// passes reports whether the uppermost group passes a controller on, or could: that of
// this machine can always, while that of a container is full of processes.
func passes(root, controller string) bool {
	if !writable(root) {
		return false
	}
	_, err := os.Stat(filepath.Join(root, "cgroup.type")) // the machine's has none
	file := "cgroup.subtree_control"
	if errors.Is(err, fs.ErrNotExist) {
		file = "cgroup.controllers"
	}
	return slices.Contains(controllers(root, file), controller)
}

// controllers reads the names in a file of a group of version 2.
func controllers(dir, file string) []string {
	return strings.Fields(hostfile.Small(filepath.Join(dir, file)))
}

// given is an ordinary user's place.
func given(root string) *Place {
	path := ownPath()
	if !unified(root) || path == "" {
		return nil
	}
	if inner := filepath.Join("/", parentGroup, ownGroup); strings.HasSuffix(path, inner) {
		path = strings.TrimSuffix(path, inner) // it has gone there before
	}
	p := &Place{dir: filepath.Join(root, path), path: path}
	for _, name := range []string{"", "cgroup.procs", "cgroup.subtree_control"} {
		if !writable(filepath.Join(p.dir, name)) {
			return nil
		}
	}
	if err := p.vacate(); err != nil {
		return nil
	}
	for _, name := range []string{Processors, Memory, Processes} {
		if slices.Contains(controllers(p.dir, "cgroup.controllers"), name) && passOn(p.dir, name) == nil {
			p.have = append(p.have, name)
		}
	}
	return p
}

// vacate moves this process from the group of the place to one below it.
func (p *Place) vacate() error {
	inside := strings.Fields(hostfile.Small(filepath.Join(p.dir, "cgroup.procs")))
	self := strconv.Itoa(os.Getpid())
	if slices.ContainsFunc(inside, func(pid string) bool { return pid != self }) {
		return fmt.Errorf("the control group %s holds other processes", p.dir)
	}
	inner := filepath.Join(p.dir, parentGroup, ownGroup)
	if err := os.MkdirAll(inner, 0o755); err != nil || len(inside) == 0 {
		return err
	}
	return writeGroup(inner, "cgroup.procs", self)
}

// ownPath is the group of version 2 that this process is in (cgroups(7),
// /proc/pid/cgroup).
func ownPath() string {
	for line := range strings.Lines(hostfile.Small("/proc/self/cgroup")) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok && path != "/" {
			return path
		}
	}
	return ""
}
