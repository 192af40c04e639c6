package guest

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// stdio are the pipes of one command. stdin, stdout and stderr are the
// supervisor's ends, nil where there is none.
type stdio struct {
	stdin, stdout, stderr *os.File
	child                 []uintptr // descriptors 0, 1 and 2 of the command
	theirs                []*os.File
}

func openStdio(q execRequest) (*stdio, error) {
	s := &stdio{child: make([]uintptr, 3)}
	err := s.input(q.stdin)
	if err == nil {
		s.stdout, err = s.output(q.stdout, 1)
	}
	if err == nil && q.merged {
		s.child[2] = s.child[1]
	} else if err == nil {
		s.stderr, err = s.output(q.stderr, 2)
	}
	if err != nil {
		s.closeChild()
		s.closeOwn()
		return nil, err
	}
	return s, nil
}

// input is a pipe, closed at once when there is nothing to read.
func (s *stdio) input(wanted bool) error {
	r, w, err := pipe()
	if err != nil {
		return err
	}
	s.give(0, os.NewFile(uintptr(r), "pipe"))
	s.stdin, err = polled(w)
	if err != nil || wanted {
		return err
	}
	err = s.stdin.Close()
	s.stdin = nil
	if err != nil {
		return fmt.Errorf("closing the input: %w", err)
	}
	return nil
}

// output is a pipe, or /dev/null for what nobody wants.
func (s *stdio) output(wanted bool, fd int) (*os.File, error) {
	if !wanted {
		if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {
			s.give(fd, null)
			return nil, nil
		}
	}
	r, w, err := pipe()
	if err != nil {
		return nil, err
	}
	s.give(fd, os.NewFile(uintptr(w), "pipe"))
	return polled(r)
}

func (s *stdio) give(fd int, f *os.File) {
	s.theirs = append(s.theirs, f)
	s.child[fd] = f.Fd()
}

func pipe() (r, w int, err error) {
	var fds [2]int
	err = unix.Pipe2(fds[:], unix.O_CLOEXEC)
	return fds[0], fds[1], os.NewSyscallError("pipe2", err)
}

// polled is an end of a pipe that waits in the runtime's poller. The other
// end, the command's, stays in blocking mode.
func polled(fd int) (*os.File, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), "pipe"), nil
}

// interrupt lets pumps stop reading at once.
func (s *stdio) interrupt() {
	for _, f := range []*os.File{s.stdout, s.stderr} {
		if f != nil {
			_ = f.SetReadDeadline(time.Unix(1, 0))
		}
	}
	if s.stdin != nil {
		_ = s.stdin.Close() // a pipe that nobody needs to read any more
	}
}

func (s *stdio) closeChild() {
	for _, f := range s.theirs {
		_ = f.Close()
	}
}

func (s *stdio) closeOwn() {
	for _, f := range []*os.File{s.stdin, s.stdout, s.stderr} {
		if f != nil {
			_ = f.Close()
		}
	}
}
