package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox/oci/internal/runtimes"
)

// recordLimit is how old a directory without a readable record must be before
// it counts as left behind: its maker writes the record at once.
const recordLimit = time.Minute

// Collect removes the sandboxes of owners that keep does not claim. Both
// backends of a state directory collect what either has left.
func (b *Backend) Collect(ctx context.Context, keep func(procid.ID) bool) ([]string, error) {
	return b.eachLeft(ctx, keep, b.collect)
}

// Survey lists which sandboxes Collect would remove.
func (b *Backend) Survey(ctx context.Context, keep func(procid.ID) bool) ([]string, error) {
	return b.eachLeft(ctx, keep, func(_ context.Context, dir string, r record) ([]string, error) {
		found, err := processesOf(r.ID)
		var lines []string
		for _, pid := range found {
			lines = append(lines, fmt.Sprintf("process %d of sandbox %s", pid, r.ID))
		}
		return append(lines, r.describe(dir)), err
	})
}

// eachLeft acts on the sandboxes that dead owners have left.
func (b *Backend) eachLeft(ctx context.Context, keep func(procid.ID) bool,
	act func(ctx context.Context, dir string, r record) ([]string, error),
) ([]string, error) {
	parent := filepath.Join(b.opts.StateDir, sandboxesDir)
	list, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("collecting sandboxes: %w", err)
	}
	var removed []string
	var errs []error
	for _, d := range list {
		if ctx.Err() != nil {
			return removed, errors.Join(append(errs, context.Cause(ctx))...)
		}
		dir := filepath.Join(parent, d.Name())
		r, dead := leftBehind(dir, keep)
		if !dead {
			continue
		}
		lines, err := act(ctx, dir, r)
		removed = append(removed, lines...)
		if err != nil {
			errs = append(errs, fmt.Errorf("collecting sandbox %q: %w", d.Name(), err))
		}
	}
	return removed, errors.Join(errs...)
}

// leftBehind reads whose a directory is and decides whether to remove it.
func leftBehind(dir string, keep func(procid.ID) bool) (record, bool) {
	r, err := readRecord(dir)
	if err == nil {
		return r, !keep(r.Owner)
	}
	r.ID = filepath.Base(dir)
	info, err := os.Lstat(dir)
	return r, err == nil && time.Since(info.ModTime()) > recordLimit
}

// collect removes one sandbox and says what there was.
func (b *Backend) collect(ctx context.Context, dir string, r record) ([]string, error) {
	if r.ID != filepath.Base(dir) {
		return nil, fmt.Errorf("its record is of %q", r.ID)
	}
	var lines []string
	found, err := processesOf(r.ID)
	if err != nil {
		return nil, err
	}
	for _, pid := range found {
		lines = append(lines, fmt.Sprintf("process %d of sandbox %s", pid, r.ID))
	}
	if err := killOf(ctx, r.ID); err != nil {
		return nil, err
	}
	for _, group := range b.groups.Dirs(r.ID) {
		lines = append(lines, "cgroup "+group)
	}
	if err := b.groups.Remove(ctx, r.ID); err != nil {
		return lines, err
	}
	lines = append(lines, removeSockets(r.ID)...)
	if err := b.removeDir(ctx, dir); err != nil {
		return lines, err
	}
	return append(lines, r.describe(dir)), nil
}

// describe says whose a directory is.
func (r record) describe(dir string) string {
	what := "directory " + dir
	if r.Name != "" {
		what += fmt.Sprintf(" (sandbox %q, job %q, trial %q)", r.Name, r.Job, r.Trial)
	}
	return what
}

// removeSockets removes the control socket of a sandbox, which gVisor puts
// elsewhere when the path of its state directory is too long for one.
func removeSockets(id string) []string {
	var removed []string
	for _, dir := range []string{"/var/run", "/run", "/tmp"} {
		name := filepath.Join(dir, "runsc-"+id+".sock")
		if os.Remove(name) == nil {
			removed = append(removed, "socket "+name)
		}
	}
	return removed
}

// killOf kills every process of a sandbox, whoever started it, and returns
// when none is left.
func killOf(ctx context.Context, id string) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		found, err := processesOf(id)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, pid := range found {
			if err := killIf(pid, func() bool { return belongs(pid, id) }); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("processes %v are still there: %w", found, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// killIf kills a process if it still is what it was taken for.
func killIf(pid int, is func() bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening process %d: %w", pid, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if !is() {
		return nil
	}
	err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	// What runs as another user of a sandbox's user namespace dies with the
	// namespace's first process.
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EPERM) {
		return nil
	}
	return os.NewSyscallError("pidfd_send_signal", err)
}

// processesOf lists the living processes of a sandbox.
func processesOf(id string) ([]int, error) {
	list, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, d := range list {
		pid, err := strconv.Atoi(d.Name())
		if err == nil && pid != os.Getpid() && belongs(pid, id) {
			found = append(found, pid)
		}
	}
	slices.Sort(found)
	return found, nil
}

// belongs reports whether a process is of a sandbox: it is in one of the mount
// namespaces in which the sandbox's directory is mounted, or it is one of the
// program's helpers for it. A process that is not waited for is none.
func belongs(pid int, id string) bool {
	at := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(at + "stat")
	if err != nil {
		return false
	}
	if end := bytes.LastIndexByte(stat, ')'); end < 0 || end+2 >= len(stat) || stat[end+2] == 'Z' || stat[end+2] == 'X' {
		return false
	}
	cmdline, err := os.ReadFile(at + "cmdline")
	if err == nil && helperOf(string(cmdline), id) {
		return true
	}
	mounts, err := os.ReadFile(at + "mountinfo")
	return err == nil && mountsOf(string(mounts), id)
}

func helperOf(cmdline, id string) bool {
	name, rest, _ := strings.Cut(cmdline, "\x00")
	name = filepath.Base(name)
	return runtimes.IsHelper(name) && strings.Contains(rest, id)
}

// mountsOf looks for the sandbox's directory as the root or the options of a
// mount, which name it from the directory of all of them on.
func mountsOf(mountinfo, id string) bool {
	return strings.Contains(mountinfo, "/"+id+"/")
}
