package docker

import (
	"errors"
	"fmt"

	"github.com/proctor-run/proctor/internal/enginesocket"
	"github.com/proctor-run/proctor/sandbox"
)

// ErrUntrusted is wrapped by New's error for an engine that is there and is not
// spoken to, because others could stand in for it.
var ErrUntrusted = errors.New("the engine is not trusted")

// trusted refuses an engine that others can listen to or stand in for, unless the
// options let it pass, and any over a network where sandboxes are hardened (outcome
// mapping, section 13.2).
func trusted(e enginesocket.Endpoint, o Options) error {
	switch {
	case e.Local():
		return nil
	case o.Hardened:
		return &sandbox.UnavailableError{
			Err: fmt.Errorf("%w: %s is reached over a network, and hardened sandboxes are made by an engine of this machine only", ErrUntrusted, e.Host),
			Fix: "forward its socket with ssh -L, and name that in DOCKER_HOST",
		}
	case e.TLS() || o.AllowRemote:
		return nil
	}
	return &sandbox.UnavailableError{
		Err: fmt.Errorf("%w: %s is reached over plain TCP, where everybody on the way can take it over", ErrUntrusted, e.Host),
		Fix: "use its socket, forward that with ssh -L, or set DOCKER_TLS_VERIFY and DOCKER_CERT_PATH; --allow-remote-engine lets it pass",
	}
}
