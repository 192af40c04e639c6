package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/jobdir"
)

// recorder keeps what happens in a trial: its result, its notes and its log. The
// attempt alone has one: its parts return what it records.
type recorder struct {
	dir     string // of the trial, absolute
	log     *logFile
	veil    *veil
	res     *jobdir.TrialResult
	notes   *jobdir.Notes
	phase   phase // the current one; enter sets it
	now     func() time.Time
	onEvent func(Event) // may be nil
}

// hostDir is a directory of the trial.
func (r *recorder) hostDir(name string) string { return filepath.Join(r.dir, name) }

// makeBelow makes a directory below the trial's, which must be there: one that was moved
// away is not made again at its old place.
func (r *recorder) makeBelow(name string) error {
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return err
	}
	return errors.Join(root.MkdirAll(name, 0o755), root.Close())
}

// probeSize is how much room there must be beside what a trial wrote, in bytes.
const probeSize = 64 << 10

// checkRoom fails where the disk of the trial's directory is full: what the trial came to
// then says nothing of the agent, whose files and rewards may be cut short.
func (r *recorder) checkRoom() (err error) {
	f, err := os.CreateTemp(r.dir, ".room-*")
	if err == nil {
		_, err = f.Write(make([]byte, probeSize))
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("the disk that it wrote to is full, so what it came to does not count: %w", err)
	}
	return nil // whatever else is wrong, writing the result will tell
}

// record keeps an error of the current phase; the first one is the trial's
// exception.
func (r *recorder) record(err error) { r.recordIn(r.phase, err) }

func (r *recorder) recordIn(p phase, err error) {
	info := r.noteIn(p, err)
	r.log.printf("Trial %s failed: %s", r.res.TrialName, info.Message)
	if r.res.ExceptionInfo != nil {
		return
	}
	r.res.ExceptionInfo = info
	path := filepath.Join(r.dir, "exception.txt")
	if err := atomicfile.WriteUnsynced(path, []byte(info.Traceback), 0o644); err != nil {
		r.warn("keeping the exception's text: %v", err)
	}
}

// note keeps an error of the current phase among the trial's notes.
func (r *recorder) note(err error) *jobdir.ExceptionInfo { return r.noteIn(r.phase, err) }

func (r *recorder) noteIn(p phase, err error) *jobdir.ExceptionInfo {
	info := newExceptionInfo(err, p.name, r.now())
	info.Message, info.Traceback = r.veil.text(info.Message), r.veil.text(info.Traceback)
	r.notes.Errors = append(r.notes.Errors, jobdir.NotedError{Phase: p.name, Type: info.Type, Message: info.Message})
	return info
}

func (r *recorder) warn(format string, args ...any) {
	message := r.veil.text(fmt.Sprintf(format, args...))
	r.notes.Warnings = append(r.notes.Warnings, message)
	r.log.printf("Warning: %s", message)
}

func (r *recorder) emit(kind EventKind, message string) {
	if r.onEvent != nil {
		r.onEvent(r.event(kind, message))
	}
}

func (r *recorder) event(kind EventKind, message string) Event {
	return Event{
		Kind: kind, Time: r.now(), TrialName: r.res.TrialName, TaskName: r.res.TaskName,
		Attempt: r.notes.Attempt, Message: r.veil.text(message),
	}
}

// enter begins a phase.
func (r *recorder) enter(p phase) {
	r.phase = p
	if p.start != "" {
		r.emit(p.start, "")
	}
}

// whole is the destination of the phases of the trial as a whole.
func (r *recorder) whole() results { return results{trial: r.res} }

// timed does the work of the current phase within a time limit, and keeps how long
// it took; passed is its error when the limit passes.
func (r *recorder) timed(ctx context.Context, into results, limit environment.Limit, passed error, f func(context.Context) error) error {
	started := jobdir.UTC(r.now())
	times := &jobdir.Timing{StartedAt: &started}
	r.phase.times(into, times)
	defer func() {
		finished := jobdir.UTC(r.now())
		times.FinishedAt = &finished
	}()
	err := limit.Bound(ctx, passed, f)
	if err != nil && ctx.Err() != nil {
		return errCancelled
	}
	return err
}
