package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/pool"
)

// turn is one subject's part of one round.
type turn struct {
	*run
	subject *Subject
	add     func(op string, sample float64)
}

// destroyLimit bounds the removal of a sandbox when the run was interrupted too.
const destroyLimit = time.Minute

func destroy(ctx context.Context, sb sandbox.Sandbox) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyLimit)
	defer cancel()
	return sb.Destroy(ctx)
}

// command runs a command that has to succeed.
func command(ctx context.Context, sb sandbox.Sandbox, c sandbox.Command) error {
	st, err := sb.Exec(ctx, c)
	if err == nil && st.Code != 0 {
		err = fmt.Errorf("command %q ended with code %d", append(c.Argv, c.Shell), st.Code)
	}
	return err
}

var doNothing = sandbox.Command{Argv: []string{trueCommand}}

// life is a sandbox from its Create to its Destroy, with one command.
func (t *turn) life(ctx context.Context) error {
	began := t.Now()
	sb, err := t.subject.Backend.Create(ctx, t.spec(t.subject))
	if err != nil {
		return err
	}
	create := t.since(began)
	began = t.Now()
	err = command(ctx, sb, doNothing)
	first := t.since(began)
	began = t.Now()
	if err := errors.Join(err, destroy(ctx, sb)); err != nil {
		return err
	}
	end := t.since(began)
	t.add(opCreate, create)
	t.add(opFirst, first)
	t.add(opReady, create+first)
	t.add(opDestroy, end)
	t.add(opLife, create+first+end)
	return nil
}

// use measures what is done in a sandbox.
func (t *turn) use(ctx context.Context) error {
	uses := []struct {
		ops []string // the first is the one that a note is kept of
		do  func(context.Context, sandbox.Sandbox) error
	}{
		{[]string{opCommand}, t.command}, {[]string{opParallel}, t.parallel}, {[]string{opReset, opResetAgain}, t.resets},
		{[]string{opUpload1, opDownload1}, t.transfer(1)},
		{[]string{opUpload100, opDownload100}, t.transfer(largeFileMiB)},
	}
	var sb sandbox.Sandbox
	var broken error
	for _, u := range uses {
		t.attempt(ctx, t, u.ops, func(ctx context.Context) (err error) {
			if sb == nil && broken == nil {
				sb, broken = t.subject.Backend.Create(ctx, t.spec(t.subject))
			}
			if broken != nil {
				return broken
			}
			return u.do(ctx, sb)
		})
	}
	if sb == nil {
		return nil
	}
	return destroy(ctx, sb)
}

func (t *turn) command(ctx context.Context, sb sandbox.Sandbox) error {
	for range commandsATime {
		began := t.Now()
		if err := command(ctx, sb, doNothing); err != nil {
			return err
		}
		t.add(opCommand, t.since(began))
	}
	return nil
}

func (t *turn) parallel(ctx context.Context, sb sandbox.Sandbox) error {
	began := t.Now()
	var lanes sync.WaitGroup
	failed := make([]error, parallel)
	for lane := range parallel {
		lanes.Go(func() {
			for range perLane {
				if failed[lane] == nil {
					failed[lane] = command(ctx, sb, doNothing)
				}
			}
		})
	}
	lanes.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	t.add(opParallel, parallel*perLane/t.since(began))
	return nil
}

// transfer brings a file that cannot be compressed in and out again.
func (t *turn) transfer(size int) func(context.Context, sandbox.Sandbox) error {
	up, down := opUpload1, opDownload1
	if size == largeFileMiB {
		up, down = opUpload100, opDownload100
	}
	return func(ctx context.Context, sb sandbox.Sandbox) error {
		dir, err := os.MkdirTemp("", "proctor-bench")
		if err != nil {
			return fmt.Errorf("making a directory for files: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		data := make([]byte, size*mebibyte)
		_, _ = rand.Read(data) // never fails
		file := filepath.Join(dir, "file")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return fmt.Errorf("writing a file to upload: %w", err)
		}
		began := t.Now()
		if err := sandbox.UploadFile(ctx, sb, file, benchDirectory+"/file"); err != nil {
			return err
		}
		t.add(up, t.since(began))
		if !t.wanted[down] {
			return nil
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return fmt.Errorf("opening a directory for files: %w", err)
		}
		defer func() { _ = root.Close() }()
		began = t.Now()
		err = sandbox.DownloadFile(ctx, sb, benchDirectory+"/file", root, "back", sandbox.DefaultDownloadLimits)
		if err != nil {
			return err
		}
		t.add(down, t.since(began))
		return nil
	}
}

// resets measures a Reset and, when there was the time to get ready for it, the next one.
func (t *turn) resets(ctx context.Context, sb sandbox.Sandbox) error {
	resetter, ok := sandbox.As[sandbox.Resetter](sb)
	if !ok {
		return errUnable
	}
	if err := t.reset(ctx, sb, resetter, opReset); err != nil || !t.wanted[opResetAgain] {
		return err
	}
	if err := clock.Sleep(ctx, time.Second); err != nil {
		return fmt.Errorf("waiting for the next reset: %w", err)
	}
	return t.reset(ctx, sb, resetter, opResetAgain)
}

func (t *turn) reset(ctx context.Context, sb sandbox.Sandbox, resetter sandbox.Resetter, op string) error {
	write := sandbox.Command{Argv: []string{"sh", "-c", "echo x > " + benchFile}}
	if err := command(ctx, sb, write); err != nil {
		return err
	}
	began := t.Now()
	if err := resetter.Reset(ctx); err != nil {
		return err
	}
	t.add(op, t.since(began))
	// What was asked for has to have happened.
	return command(ctx, sb, sandbox.Command{Argv: []string{"sh", "-c", "! test -e " + benchFile}})
}

// fork measures one fork of a snapshot of a sandbox in which something was written.
func (t *turn) fork(ctx context.Context) (err error) {
	sb, err := t.subject.Backend.Create(ctx, t.spec(t.subject))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, destroy(ctx, sb)) }()
	snapshotter, ok := sandbox.As[sandbox.Snapshotter](sb)
	if !ok {
		return errUnable
	}
	if err := command(ctx, sb, sandbox.Command{Argv: []string{"sh", "-c", "echo x > " + benchFile}}); err != nil {
		return err
	}
	snapshot, err := snapshotter.Snapshot(ctx, "bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snapshot.Release(context.WithoutCancel(ctx))) }()
	began := t.Now()
	forked, err := snapshot.Fork(ctx, t.spec(t.subject))
	if err != nil {
		return err
	}
	took := t.since(began)
	err = command(ctx, forked, sandbox.Command{Argv: []string{"test", "-e", benchFile}})
	if err := errors.Join(err, destroy(ctx, forked)); err != nil {
		return err
	}
	t.add(opFork, took)
	return nil
}

// pool measures what a pool gives that has had the time to fill.
func (t *turn) pool(ctx context.Context) (err error) {
	if _, ok := t.subject.Backend.(sandbox.Preparer); !ok {
		return errUnable
	}
	p := pool.New(t.subject.Backend, pool.Options{Size: 1})
	defer func() { err = errors.Join(err, p.Close(context.WithoutCancel(ctx))) }()
	return t.take(ctx, p)
}

// take fills the pool and takes a sandbox from it.
func (t *turn) take(ctx context.Context, p *pool.Pool) error {
	spec := t.spec(t.subject)
	if err := p.Fill(ctx, spec); err != nil {
		return err
	}
	began := t.Now()
	sb, err := p.Create(ctx, spec)
	if err != nil {
		return err
	}
	took := t.since(began)
	if err := errors.Join(command(ctx, sb, doNothing), destroy(ctx, sb)); err != nil {
		return err
	}
	t.add(opPool, took)
	return nil
}

// trials measures whole trials.
func (t *turn) trials(ctx context.Context) error {
	if t.subject.Trials == nil {
		return errUnable
	}
	began := t.Now()
	if err := t.subject.Trials(ctx, t.Trials, t.AtATime); err != nil {
		return err
	}
	t.add(opTrials, float64(t.Trials)/t.since(began))
	return nil
}
