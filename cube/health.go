package cube

import (
	"context"

	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/guarded"
)

// HealthChecker is the ability of a backend to tell whether what it launched
// works.
type HealthChecker interface {
	HealthCheck(ctx context.Context, c Container) (bool, error)
}

// runHealthCheck asks the backend, if it can tell, whether a container works,
// and stops one that does not.
func runHealthCheck(ctx context.Context, b ContainerBackend, c Container) error {
	checker, ok := b.(HealthChecker)
	if !ok {
		return nil
	}
	healthy := false
	err := guarded.Call("HealthCheck", func() (err error) {
		healthy, err = checker.HealthCheck(ctx, c)
		return err
	})
	switch {
	case err != nil:
		err = exception.Errorf(infra.HealthCheckErrorKind, "Health check raised an exception: %w", err)
	case !healthy:
		err = exception.Errorf(infra.HealthCheckErrorKind, "Health check returned False")
	default:
		return nil
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	return joinCleanup(err, c.Stop(ctx))
}
