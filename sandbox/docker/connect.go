package docker

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/guest"
	"github.com/proctor-run/proctor/sandbox/internal/entrypoint"
)

const (
	// greetLimit bounds the time from the start of a container to the
	// supervisor's greeting.
	greetLimit = 20 * time.Second
	// saidLimit is how much is kept of what the supervisor says besides its
	// protocol.
	saidLimit = 8 << 10
)

// connection is the way to a container's first process: its standard streams,
// attached before it is started.
type connection struct {
	conn   client.HijackedResponse
	stdout *outputReader
	said   *bounded.Tail // standard error
}

// attachTo connects with the streams of a container that is not started yet.
func attachTo(ctx context.Context, api *client.Client, id string) (*connection, error) {
	r, err := api.ContainerAttach(ctx, id, client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, fmt.Errorf("attaching to the container: %w", err)
	}
	c := &connection{conn: r.HijackedResponse, said: bounded.NewTail(saidLimit)}
	c.stdout = &outputReader{r: bufio.NewReaderSize(c.conn.Reader, 64<<10), stderr: c.said}
	return c, nil
}

// Read is the first process's standard output.
func (c *connection) Read(p []byte) (int, error) { return c.stdout.Read(p) }

// Write is its standard input.
func (c *connection) Write(p []byte) (int, error) { return c.conn.Conn.Write(p) }

func (c *connection) Close() error {
	c.conn.Close()
	return nil
}

// greet speaks to the supervisor that has just been started.
func (c *connection) greet(ctx context.Context, o guest.Options) (*guest.Client, error) {
	limited, cancel := context.WithTimeoutCause(ctx, greetLimit, fmt.Errorf("no answer within %v", greetLimit))
	defer cancel()
	g, err := guest.Dial(limited, c, c, o)
	if err != nil {
		if said := strings.TrimSpace(c.said.String()); said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
		return nil, err
	}
	return g, nil
}

// outputReader reads standard output out of the engine's multiplexed format,
// and hands on standard error.
type outputReader struct {
	r      *bufio.Reader
	stderr io.Writer
	left   int64 // of the current frame of standard output
}

func (o *outputReader) Read(p []byte) (int, error) {
	for o.left == 0 {
		var head [frameHeader]byte
		if _, err := io.ReadFull(o.r, head[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return 0, io.EOF
			}
			return 0, fmt.Errorf("reading a frame of output: %w", err)
		}
		size := int64(binary.BigEndian.Uint32(head[4:]))
		switch head[0] {
		case frameStdin, frameStdout:
			o.left = size
		case frameStderr:
			if _, err := io.CopyN(o.stderr, o.r, size); err != nil {
				return 0, fmt.Errorf("reading a frame of output: %w", err)
			}
		default:
			return 0, fmt.Errorf("output frame of unknown stream %d", head[0])
		}
	}
	n, err := o.r.Read(p[:min(int64(len(p)), o.left)])
	o.left -= int64(n)
	if err != nil && o.left > 0 && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err //nolint:wrapcheck // an end is an end
}

// supervision is the connection with a container's supervisor.
type supervision struct {
	client  *guest.Client
	conn    *connection
	service *entrypoint.Process // what runs beside the commands; nil for nothing
	begin   func(context.Context) *entrypoint.Process
	settle  func(context.Context) error // waits until an entrypoint runs as it will; nil for none
}

// start starts what runs beside the commands, which ends with the container.
func (s *supervision) start(ctx context.Context) { s.service = s.begin(ctx) }

// beginner starts a service, if there is one. env is the container's.
func (what service) beginner(g entrypoint.Guest, env []string) func(context.Context) *entrypoint.Process {
	return func(ctx context.Context) *entrypoint.Process {
		if len(what.argv) == 0 {
			return nil
		}
		return entrypoint.Start(ctx, g, sandbox.Command{Argv: what.argv, Env: env, User: what.user, Dir: what.dir}, what.stdin)
	}
}
