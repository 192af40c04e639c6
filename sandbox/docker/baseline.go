package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/image"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/compose"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

// Baseline returns the engine as any client of its API uses it, for measurements
// to compare with: create and start a container, one exec for each command,
// copies, remove. Nothing of what the contract of package sandbox promises beyond
// that is kept: it proves no end of processes, has no limits of time, and its
// Mark and KillTree are refused. Its images must be in the engine.
func (b *Backend) Baseline() sandbox.Backend { return baseline{b} }

type baseline struct{ *Backend }

// Create creates and starts a container.
func (b baseline) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	name := containerName(spec.Name)
	created, err := b.api.ContainerCreate(ctx, options(name, spec, compose.Image{Ref: spec.Image.Ref}, true))
	if err != nil {
		return nil, fmt.Errorf("creating container %s: %w", name, err)
	}
	if _, err := b.api.ContainerStart(ctx, created.ID, client.ContainerStartOptions{}); err != nil {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("starting container %s: %w", name, err), engine.Remove(end, b.api, created.ID))
	}
	return bareContainer{api: b.api, id: created.ID, spec: spec}, nil
}

// bareContainer is a container of the baseline.
type bareContainer struct {
	api  *client.Client
	id   string
	spec sandbox.Spec
}

// ID is the container's.
func (c bareContainer) ID() string { return c.id }

// Exec asks the engine for one exec and reads it to its end.
func (c bareContainer) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	argv := cmd.Argv
	if len(argv) == 0 {
		argv = []string{"bash", "-c", cmd.Shell}
	}
	created, err := c.api.ExecCreate(ctx, c.id, client.ExecCreateOptions{
		Cmd: argv, Env: sandbox.MergeEnv(c.spec.Env, cmd.Env), WorkingDir: cmp.Or(cmd.Dir, c.spec.Workdir), User: cmp.Or(cmd.User, c.spec.User),
		AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return sandbox.ExitStatus{}, fmt.Errorf("creating an exec: %w", err)
	}
	conn, err := attach(ctx, c.api, created.ID)
	if err != nil {
		return sandbox.ExitStatus{}, fmt.Errorf("starting an exec: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, conn.Close)()
	out := orDiscard(cmd.Stdout)
	side := out
	if cmd.Stderr != nil {
		side = cmd.Stderr
	}
	if err := demultiplex(conn.Reader, out, side); err != nil {
		return sandbox.ExitStatus{}, err
	}
	r, err := c.api.ExecInspect(ctx, created.ID, client.ExecInspectOptions{})
	if err != nil {
		return sandbox.ExitStatus{}, fmt.Errorf("asking how an exec ended: %w", err)
	}
	return sandbox.ExitStatus{Code: r.ExitCode}, nil
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// Mark is refused: an engine has no such thing.
func (c bareContainer) Mark(context.Context) (sandbox.Mark, error) {
	return "", fmt.Errorf("marking processes: %w", sandbox.ErrUnsupported)
}

// KillTree is refused, as Mark is.
func (c bareContainer) KillTree(context.Context, sandbox.Mark, time.Duration) error {
	return fmt.Errorf("ending processes: %w", sandbox.ErrUnsupported)
}

// Upload is the engine's copy, with the directory made by the archive.
func (c bareContainer) Upload(ctx context.Context, dir string, stream io.Reader) error {
	below := strings.TrimPrefix(path.Clean(dir), "/")
	pr, pw := io.Pipe()
	go func() { pw.CloseWithError(prefix(pw, below, []string{below}, stream)) }() // ends with its reader
	_, err := c.api.CopyToContainer(ctx, c.id, client.CopyToContainerOptions{DestinationPath: "/", Content: pr})
	pr.CloseWithError(errStopped)
	if err != nil {
		return fmt.Errorf("uploading to %q: %w", dir, err)
	}
	return nil
}

// Download is the engine's copy.
func (c bareContainer) Download(ctx context.Context, src string, dst io.Writer) error {
	r, err := c.api.CopyFromContainer(ctx, c.id, client.CopyFromContainerOptions{SourcePath: src})
	if err != nil {
		return fmt.Errorf("downloading %q: %w", src, err)
	}
	defer func() { _ = r.Content.Close() }()
	if _, err := io.Copy(dst, r.Content); err != nil {
		return fmt.Errorf("downloading %q: %w", src, err)
	}
	return nil
}

// Destroy removes the container.
func (c bareContainer) Destroy(ctx context.Context) error { return engine.Remove(ctx, c.api, c.id) }

// LocalImages lists the images that the engine has under a name, the smallest
// first, but for those that were built for tasks.
func (b *Backend) LocalImages(ctx context.Context) ([]string, error) {
	list, err := b.api.ImageList(ctx, client.ImageListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the engine's images: %w", err)
	}
	slices.SortStableFunc(list.Items, func(x, y image.Summary) int { return cmp.Compare(x.Size, y.Size) })
	var names []string
	for _, img := range list.Items {
		for _, tag := range img.RepoTags {
			if !strings.HasPrefix(tag, builtPrefix) && !strings.HasPrefix(tag, "<none>") {
				names = append(names, tag)
			}
		}
	}
	return names, nil
}
