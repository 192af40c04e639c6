package cubetest

import (
	"context"
	"slices"
	"sync"

	"github.com/proctor-run/proctor/cube"
)

// watch knows which of the containers that were launched through it are not
// stopped yet.
type watch struct {
	mu   sync.Mutex
	live []string
}

func (w *watch) running() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.live)
}

func (w *watch) started(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live = append(w.live, id)
}

func (w *watch) stopped(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live = slices.DeleteFunc(w.live, func(x string) bool { return x == id })
}

// backend returns b with its containers watched; nil stays nil.
func (w *watch) backend(b cube.ContainerBackend) cube.ContainerBackend {
	if b == nil {
		return nil
	}
	return &watchedBackend{b, w}
}

type watchedBackend struct {
	cube.ContainerBackend
	w *watch
}

func (b *watchedBackend) Launch(ctx context.Context, cfg *cube.ContainerConfig) (cube.Container, error) {
	c, err := b.ContainerBackend.Launch(ctx, cfg)
	if err != nil {
		return nil, err
	}
	b.w.started(c.ID())
	return &watchedContainer{c, b.w}, nil
}

type watchedContainer struct {
	cube.Container
	w *watch
}

// Unwrap returns the container itself.
func (c *watchedContainer) Unwrap() cube.Container { return c.Container }

func (c *watchedContainer) Stop(ctx context.Context) error {
	err := c.Container.Stop(ctx)
	if err == nil {
		c.w.stopped(c.ID())
	}
	return err
}

// brokenTool is a tool config whose tools cannot be made.
type brokenTool struct{}

func (*brokenTool) TypeName() string { return "cube.cubetest.BrokenTool" }

func (*brokenTool) Make(context.Context, cube.Container) (cube.Tool, error) {
	return nil, cube.RuntimeErrorf("this tool config fails on purpose")
}
