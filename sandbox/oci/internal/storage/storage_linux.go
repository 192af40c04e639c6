package storage

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// look is how often file systems are asked how full they are.
	look = 250 * time.Millisecond
	// oldest is what is known of the directories at most, as others may delete what a
	// sandbox writes at the same time.
	oldest = time.Minute
	// perFile bounds how many files there are: each counts at least that much, in bytes.
	perFile = 4096
	// perEntry is how long directories are left alone for each entry that was looked at,
	// many times what that took.
	perEntry = 50 * time.Microsecond
	// Leeway is how much more may be written when there is too much, in bytes.
	Leeway = 64 << 20
)

// Watch bounds what is written to directories.
type Watch struct {
	Dirs  []string
	Kept  int64 // bytes that count besides, and do not change
	Limit int64 // in bytes, of all of them together
	// Exceeded ends whatever may write. It is called when there is more than the limit, and
	// again whenever there is Leeway more than the last time, until there is no more than
	// the limit. No command begins meanwhile.
	Exceeded func(ctx context.Context, bytes int64)

	mu      sync.Mutex
	running int            // commands under way
	limit   int64          // as it is now
	there   usage          // as it was
	before  map[fsid]int64 // how full file systems were then
}

type fsid = unix.Fsid

// Run watches until the context ends. Directories are read only when so much has been
// written to their file systems, by whomever, that there may be more than the limit in
// them, while there is, and once a minute.
func (w *Watch) Run(ctx context.Context) {
	for age, pause := time.Duration(0), look; ; age += pause {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if age < oldest && !w.suspicious() {
			pause = look
			continue
		}
		before, there := w.filled(), w.measure(ctx)
		age, pause = 0, max(look, time.Duration(there.entries)*perEntry)
		if ctx.Err() != nil {
			return
		}
		w.mu.Lock()
		if w.found(before, there) {
			w.Exceeded(ctx, there.bytes)
		}
		w.mu.Unlock()
	}
}

// Begin is called before each command, and what it returns after it. What was written
// before is not the fault of the first that begins: it may write Leeway more.
func (w *Watch) Begin(ctx context.Context) (end func()) {
	w.mu.Lock()
	if w.running == 0 && w.suspiciousLocked() {
		before := w.filled()
		_ = w.found(before, w.measure(ctx))
	}
	w.running++
	w.mu.Unlock()
	return func() {
		w.mu.Lock()
		w.running--
		w.mu.Unlock()
	}
}

// suspicious reports whether there may be more than the limit, or was.
func (w *Watch) suspicious() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.suspiciousLocked()
}

func (w *Watch) suspiciousLocked() bool {
	if w.before == nil {
		w.before, w.limit, w.there.bytes = w.filled(), w.Limit, w.Kept
	}
	return w.limit > w.Limit || w.there.bytes+grown(w.before, w.filled()) > w.limit
}

// found notes what there is, and reports whether it is too much. The caller has mu.
func (w *Watch) found(before map[fsid]int64, there usage) (exceeded bool) {
	w.before, w.there = before, there
	exceeded = there.bytes > w.limit
	switch {
	case exceeded:
		w.limit = there.bytes + Leeway
	case there.bytes <= w.Limit:
		w.limit = w.Limit
	}
	return exceeded
}

// filled is how many bytes are used of the file systems, by their ids.
func (w *Watch) filled() map[fsid]int64 {
	all := map[fsid]int64{}
	for _, dir := range w.Dirs {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err == nil { // else it is going
			all[st.Fsid] = int64(st.Blocks-st.Bfree)*st.Bsize + int64(st.Files-st.Ffree)*perFile //nolint:gosec // a file system's size
		}
	}
	return all
}

// grown is how much more there is.
func grown(before, now map[fsid]int64) (bytes int64) {
	for id, used := range now {
		bytes += max(used-before[id], 0)
	}
	return bytes
}
