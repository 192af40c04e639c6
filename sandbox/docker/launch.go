package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/compose"
	"github.com/proctor-run/proctor/sandbox/guest"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

// launch is the start of one container, with a supervisor or without.
type launch struct {
	b       *Backend
	spec    sandbox.Spec
	way     way
	program string // of the supervisor
	image   string // digest of its configuration
	service service
	conn    *connection  // once created
	sup     *supervision // once started
}

// prepare changes what the engine is asked for.
func (l *launch) prepare(o *client.ContainerCreateOptions, img compose.Image) {
	l.image = img.ID
	if l.way != byEngine {
		l.service = supervised(o, img, l.way, l.program)
	}
}

// created puts the supervisor into the container that the engine has made, and
// takes hold of its streams.
func (l *launch) created(ctx context.Context, id string) (err error) {
	if l.way == byCopy {
		if err := l.b.putGuest(ctx, id, l.program); err != nil {
			return &guestError{l.way, err}
		}
	}
	if l.way != byEngine {
		if l.conn, err = attachTo(ctx, l.b.api, id); err != nil {
			return &guestError{l.way, err}
		}
	}
	return nil
}

// started greets the supervisor and starts what runs beside the commands. env
// is the environment of the container.
func (l *launch) started(ctx context.Context, env []string) error {
	if l.way == byEngine {
		return nil
	}
	g, err := l.conn.greet(ctx, guest.Options{Build: l.b.version, Env: env, User: l.service.user, Workdir: l.service.dir, Powerless: l.spec.Hardened})
	if err != nil {
		return &guestError{l.way, err}
	}
	l.sup = &supervision{client: g, conn: l.conn, begin: l.service.beginner(g, env)}
	l.sup.start(ctx)
	return nil
}

// failed makes an error of the engine one of the supervisor where it names it.
func (l *launch) failed(err error) error {
	if l.way != byEngine && engine.Says(err, strings.ToLower(l.program), guestPath) {
		return &guestError{l.way, err}
	}
	return err
}

// abort lets go of the streams.
func (l *launch) abort() {
	switch {
	case l.sup != nil:
		_ = l.sup.client.Close()
	case l.conn != nil:
		_ = l.conn.Close()
	}
}

// container is the sandbox that was started.
func (l *launch) container(id, name string) *Container {
	c := newContainer(l.b.api, l.b.now, id, name, l.spec)
	c.guest, c.rootless, c.image = l.sup, &l.b.rootless, l.image
	return c
}

// defaultPath is what engines set where an image has no PATH.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environmentOf is what the engine gives to the processes of a container: env is
// the image's, or the container's own above it.
func environmentOf(hostname string, env []string) []string {
	return slices.Concat([]string{defaultPath, "HOSTNAME=" + hostname}, env)
}

// hostnameOf is the name that a container has where none is asked for.
func hostnameOf(id string) string { return id[:min(len(id), 12)] }

// warnEngine says what a sandbox without a supervisor does not promise.
func warnEngine(spec sandbox.Spec, why error) {
	if spec.Warn != nil {
		spec.Warn(fmt.Sprintf("commands are supervised by the container engine alone, so that ending one ends everything in the container: %v", why))
	}
}
