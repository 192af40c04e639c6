package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/enginesocket"
	"github.com/proctor-run/proctor/sandbox"
)

// Check asks the engine for its version: it must answer and run Linux
// containers.
func (b *Backend) Check(ctx context.Context) error {
	v, err := b.api.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return silent(b.host, err)
	}
	if v.Os != "linux" {
		return &sandbox.UnavailableError{Err: fmt.Errorf("the engine at %s runs %q containers", b.host, v.Os), Fix: "switch it to Linux containers"}
	}
	return nil
}

// unfound is why no engine is known.
func unfound(err error) error {
	fix := "correct DOCKER_HOST or the docker command's context"
	if errors.Is(err, enginesocket.ErrSSH) {
		fix = "forward the engine's socket with ssh -L, and name that in DOCKER_HOST"
	}
	return &sandbox.UnavailableError{Err: fmt.Errorf("finding the engine: %w", err), Fix: fix}
}

// silent is why the engine at an address does not answer.
func silent(host string, err error) error {
	const start = "start Docker or Podman's socket, or set DOCKER_HOST, or choose another environment with -e"
	why := &sandbox.UnavailableError{Err: fmt.Errorf("asking the engine at %s: %w", host, err), Fix: "look at the engine's log"}
	switch text := err.Error(); {
	case errors.Is(err, context.DeadlineExceeded):
		why.Fix = "the engine hangs: restart it"
	case strings.Contains(text, "permission denied"):
		why.Err = &silence{fmt.Sprintf("this user may not use the engine at %s: %v", host, syscall.EACCES), err}
		why.Fix = "add your user to the group that owns the socket, usually docker, and log in again, or choose another environment with -e"
	case unreached(err):
		why.Err, why.Fix = &silence{fmt.Sprintf("no engine answers at %s%s", host, cause(err)), err}, start
	case client.IsErrConnectionFailed(err):
		why.Fix = start
	}
	return why
}

// unreached reports whether nothing listens at an address, which the client says with
// the address and advice of its own once more.
func unreached(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) ||
		client.IsErrConnectionFailed(err) && strings.Contains(err.Error(), "Cannot connect to the Docker daemon")
}

// cause is what the system says of a connection, as the end of a sentence.
func cause(err error) string {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		if no, ok := errors.AsType[syscall.Errno](e); ok {
			return ": " + no.Error()
		}
	}
	return ""
}

// silence is an engine's silence in fewer words than the client's.
type silence struct {
	text string
	err  error
}

func (e *silence) Error() string { return e.text }
func (e *silence) Unwrap() error { return e.err }
