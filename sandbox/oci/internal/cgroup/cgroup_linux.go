package cgroup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox/oci/internal/hostfile"
)

const (
	// Root is where the cgroup file systems are mounted.
	Root = "/sys/fs/cgroup"
	// parentGroup holds a group per sandbox, in each hierarchy.
	parentGroup = "proctor"
)

func unified(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
}

func writable(name string) bool { return unix.Access(name, unix.W_OK) == nil }

// Dirs lists the groups of a sandbox that are left.
func (p *Place) Dirs(id string) []string {
	var dirs []string
	for _, pattern := range []string{
		filepath.Join(p.root(), parentGroup, id),
		filepath.Join(p.root(), "*", parentGroup, id),
	} {
		found, _ := filepath.Glob(pattern) // the pattern is correct
		dirs = append(dirs, found...)
	}
	return dirs
}

// KilledForMemory reports whether the kernel has ended a process of a sandbox because its
// group, or the machine, was out of memory.
func (p *Place) KilledForMemory(id string) bool {
	for _, dir := range p.Dirs(id) {
		for _, name := range []string{"memory.events", "memory.oom_control"} { // version 2 and 1
			for line := range strings.Lines(hostfile.Small(filepath.Join(dir, name))) {
				if f := strings.Fields(line); len(f) == 2 && f[0] == "oom_kill" && f[1] != "0" {
					return true
				}
			}
		}
	}
	return false
}

// Remove removes the groups of a sandbox whose processes have ended. The
// kernel counts a process to its group for a moment longer than it lives.
func (p *Place) Remove(ctx context.Context, id string) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		var busy error
		for _, dir := range p.Dirs(id) {
			err := os.Remove(dir)
			if errors.Is(err, unix.EBUSY) {
				busy = err
			} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if busy == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(busy, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}
