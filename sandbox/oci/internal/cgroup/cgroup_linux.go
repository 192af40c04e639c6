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

// Writable reports whether root can make groups with CPU and memory limits.
func Writable() bool {
	if !unified(Root) {
		return writable(filepath.Join(Root, "cpu")) && writable(filepath.Join(Root, "memory"))
	}
	// Controllers can be passed on from the real root only; a container's root
	// group is full of processes.
	controllers, err := os.ReadFile(filepath.Join(Root, "cgroup.subtree_control"))
	if err != nil || !writable(Root) {
		return false
	}
	have := strings.Fields(string(controllers))
	_, err = os.Stat(filepath.Join(Root, "cgroup.type")) // the real root has none
	passed := containsAll(have, "cpu", "memory")
	return passed || errors.Is(err, fs.ErrNotExist)
}

// CountsPIDs reports whether groups bound how many processes there are.
func CountsPIDs(root string) bool {
	if writable(filepath.Join(root, "pids")) {
		return true
	}
	return containsAll(strings.Fields(hostfile.Small(filepath.Join(root, "cgroup.controllers"))), "pids")
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

func writable(name string) bool { return unix.Access(name, unix.W_OK) == nil }

// Dirs lists the groups of a sandbox that are left.
func Dirs(id string) []string {
	var dirs []string
	for _, pattern := range []string{
		filepath.Join(Root, parentGroup, id),
		filepath.Join(Root, "*", parentGroup, id),
	} {
		found, _ := filepath.Glob(pattern) // the pattern is correct
		dirs = append(dirs, found...)
	}
	return dirs
}

// Remove removes the groups of a sandbox whose processes have ended. The
// kernel counts a process to its group for a moment longer than it lives.
func Remove(ctx context.Context, id string) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		var busy error
		for _, dir := range Dirs(id) {
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

// Path is the group of a sandbox in a hierarchy.
func Path(id string) string { return "/" + parentGroup + "/" + id }
