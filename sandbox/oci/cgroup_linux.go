package oci

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	cgroupRoot = "/sys/fs/cgroup"
	// cgroupParent holds a group per sandbox, in each hierarchy.
	cgroupParent = "proctor"
)

// cgroupsWritable reports whether root can make groups with CPU and memory limits.
func cgroupsWritable() bool {
	if !unified(cgroupRoot) {
		return writableDir(filepath.Join(cgroupRoot, "cpu")) && writableDir(filepath.Join(cgroupRoot, "memory"))
	}
	// Controllers can be passed on from the real root only; a container's root
	// group is full of processes.
	controllers, err := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.subtree_control"))
	if err != nil || !writableDir(cgroupRoot) {
		return false
	}
	have := strings.Fields(string(controllers))
	_, err = os.Stat(filepath.Join(cgroupRoot, "cgroup.type")) // the real root has none
	passed := containsAll(have, "cpu", "memory")
	return passed || errors.Is(err, fs.ErrNotExist)
}

// pidsCounted reports whether groups bound how many processes there are.
func pidsCounted(root string) bool {
	if writableDir(filepath.Join(root, "pids")) {
		return true
	}
	return containsAll(strings.Fields(readSmall(filepath.Join(root, "cgroup.controllers"))), "pids")
}

func containsAll(have []string, want ...string) bool {
	for _, w := range want {
		found := false
		for _, h := range have {
			found = found || h == w
		}
		if !found {
			return false
		}
	}
	return true
}

func unified(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
}

func writableDir(dir string) bool { return unix.Access(dir, unix.W_OK) == nil }

// cgroupDirs lists the groups of a sandbox that are left.
func cgroupDirs(id string) []string {
	var dirs []string
	for _, pattern := range []string{
		filepath.Join(cgroupRoot, cgroupParent, id),
		filepath.Join(cgroupRoot, "*", cgroupParent, id),
	} {
		found, _ := filepath.Glob(pattern) // the pattern is correct
		dirs = append(dirs, found...)
	}
	return dirs
}

// removeCgroups removes the groups of a sandbox whose processes have ended. The
// kernel counts a process to its group for a moment longer than it lives.
func removeCgroups(ctx context.Context, id string) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		var busy error
		for _, dir := range cgroupDirs(id) {
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
