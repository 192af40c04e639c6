package external

import (
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// grace is how long a command has to end when it is asked to, as in sandboxes.
const grace = 2 * time.Second

// process is a command of this machine, with all that it starts in its process group.
type process struct {
	proc  *os.Process
	stdin *os.File

	outputs []output
	readers sync.WaitGroup
	exited  chan struct{} // the command itself has ended
	quiet   chan struct{} // and nothing holds its outputs open
	state   *os.ProcessState
	err     error // of waiting for it
}

// output is the end of a pipe, and where to it is copied.
type output struct {
	from *os.File
	to   io.Writer
}

// startProcess starts a command by the shell, with these variables and no others. What it
// prints is copied from when read is called.
func startProcess(command string, vars []string, stdout, stderr io.Writer) (_ *process, err error) {
	var opened []*os.File
	defer func() {
		if err != nil {
			closeAll(opened)
		}
	}()
	pipe := func() (r, w *os.File) {
		if err != nil {
			return nil, nil
		}
		r, w, err = os.Pipe()
		opened = append(opened, r, w)
		return r, w
	}
	in, stdin := pipe()
	outOf, out := pipe()
	errOf, errs := pipe()
	if err != nil {
		return nil, os.NewSyscallError("pipe", err)
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = vars, in, out, errs
	ownGroup(cmd)
	p := &process{
		stdin: stdin, outputs: []output{{outOf, stdout}, {errOf, stderr}},
		exited: make(chan struct{}), quiet: make(chan struct{}),
	}
	started := make(chan error)
	go p.run(cmd, started)
	if err = <-started; err != nil {
		return nil, err
	}
	closeAll([]*os.File{in, out, errs})
	return p, nil
}

// run starts a command and waits for it, on one thread: where the command is to end with
// this program, the kernel ends it with the thread that started it.
func (p *process) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	p.proc = cmd.Process
	started <- err
	if err != nil {
		return
	}
	p.state, p.err = awaitExit(p.proc)
	close(p.exited)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// read begins to copy what the command prints.
func (p *process) read() {
	for _, o := range p.outputs {
		p.readers.Go(func() { _, _ = io.Copy(o.to, o.from) })
	}
	go func() {
		<-p.exited
		p.readers.Wait()
		close(p.quiet)
	}()
}

// finish returns the command's exit code when it has ended. When ctx ends it is ended with
// all of its group, and when stop is closed it may end by itself first. What it leaves in
// its group is killed. calledOff is called before the last of its output is given up.
func (p *process) finish(ctx context.Context, stop <-chan struct{}, calledOff func()) (int, error) {
	select {
	case <-p.exited:
	case <-ctx.Done():
		terminateGroup(p.proc)
	case <-stop:
		_ = p.stdin.Close()
		if !p.isQuiet() {
			terminateGroup(p.proc)
		}
	}
	p.isQuiet()
	killGroup(p.proc)
	<-p.exited
	calledOff()
	_ = p.stdin.Close()
	if !p.isQuiet() { // somebody outside the group has the pipes
		for _, o := range p.outputs {
			_ = o.from.Close()
		}
		<-p.quiet
	}
	for _, o := range p.outputs {
		_ = o.from.Close()
	}
	if p.state == nil && p.err == nil {
		p.state, p.err = p.proc.Wait()
	}
	if p.err != nil {
		return 0, p.err
	}
	return exitCode(p.state), nil
}

// isQuiet waits, within the grace, until the command has ended and its outputs with it.
func (p *process) isQuiet() bool {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.quiet:
		return true
	case <-timer.C:
		return false
	}
}
