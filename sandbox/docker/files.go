package docker

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
)

// Upload unpacks a tar stream below dir: the supervisor does, which sees no
// files but the container's, or else the engine, which resolves links in dir
// inside the container's own root.
//
// The engine is given an archive of the whole root: in one of a directory it
// refuses links that lead out of that directory.
func (c *Container) Upload(ctx context.Context, dir string, stream io.Reader) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	if !path.IsAbs(dir) {
		return fmt.Errorf("uploading to %q: not an absolute path", dir)
	}
	if c.guest != nil {
		if err := c.guest.client.Upload(ctx, dir, stream); err != nil {
			return c.explain(ctx, "uploading", err)
		}
		return nil
	}
	dir = path.Clean(dir)
	missing, err := c.missing(ctx, dir)
	if err == nil {
		err = c.unpack(ctx, strings.TrimPrefix(dir, "/"), missing, stream)
	}
	if err != nil {
		return c.explain(ctx, fmt.Sprintf("uploading to %q", dir), err)
	}
	return nil
}

// missing lists the directories on the way to dir, and dir, that are not
// there, outermost first.
func (c *Container) missing(ctx context.Context, dir string) ([]string, error) {
	var missing []string
	for ; dir != "/"; dir = path.Dir(dir) {
		r, err := c.api.ContainerStatPath(ctx, c.id, client.ContainerStatPathOptions{Path: dir})
		switch {
		case err == nil && r.Stat.Mode&(fs.ModeDir|fs.ModeSymlink) == 0:
			return nil, fmt.Errorf("%q is not a directory", dir)
		case err == nil:
			return missing, nil
		case !cerrdefs.IsNotFound(err):
			return nil, fmt.Errorf("looking at %q: %w", dir, err)
		}
		missing = slices.Insert(missing, 0, strings.TrimPrefix(dir, "/"))
	}
	return missing, nil
}

func (c *Container) put(ctx context.Context, dir string, stream io.Reader) error {
	_, err := c.api.CopyToContainer(ctx, c.id, client.CopyToContainerOptions{
		DestinationPath: dir,
		Content:         stream,
	})
	if err != nil {
		return fmt.Errorf("sending the archive: %w", err)
	}
	return nil
}

// unpack sends the stream's entries with all names moved below a directory,
// after the directories that are missing.
func (c *Container) unpack(ctx context.Context, below string, missing []string, stream io.Reader) error {
	if below == "" {
		return c.put(ctx, "/", stream)
	}
	pr, pw := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := prefix(pw, below, missing, stream)
		pw.CloseWithError(err)
		done <- err
	}()
	err := c.put(ctx, "/", pr)
	pr.CloseWithError(errStopped)
	if e := <-done; e != nil && !errors.Is(e, errStopped) {
		return e
	}
	return err
}

var errStopped = errors.New("the engine stopped reading")

// prefix writes directories, and a tar stream with all names moved below
// another. Names that lead out of it are refused.
func prefix(dst io.Writer, below string, missing []string, stream io.Reader) error {
	out := tar.NewWriter(dst)
	for _, dir := range missing {
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
			return fmt.Errorf("sending directory %q: %w", dir, err)
		}
	}
	move := func(name string) (string, error) {
		if clean := path.Clean(name); clean == ".." || strings.HasPrefix(clean, "../") {
			return "", fmt.Errorf("archive entry %q leads out of the directory", name)
		}
		return below + path.Join("/", name), nil
	}
	err := rewrite(out, stream, func(h *tar.Header) (_ bool, err error) {
		slash := strings.HasSuffix(h.Name, "/")
		if h.Name, err = move(h.Name); err != nil {
			return false, err
		}
		if slash {
			h.Name = strings.TrimSuffix(h.Name, "/") + "/"
		}
		if h.Typeflag == tar.TypeLink {
			h.Linkname, err = move(h.Linkname)
		}
		return true, err
	})
	if err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("ending the archive: %w", err)
	}
	return nil
}

// rewrite copies entries that change accepts, with what it made of their
// headers.
func rewrite(out *tar.Writer, stream io.Reader, change func(*tar.Header) (bool, error)) error {
	in := tar.NewReader(stream)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the archive: %w", err)
		}
		take, err := change(h)
		if err != nil {
			return err
		}
		if !take {
			continue
		}
		h.Format = tar.FormatUnknown // the writer chooses what holds the new names
		if err := out.WriteHeader(h); err != nil {
			return fmt.Errorf("passing on entry %q: %w", h.Name, err)
		}
		if _, err := io.Copy(out, in); err != nil {
			return fmt.Errorf("passing on entry %q: %w", h.Name, err)
		}
	}
}

// notADirectory is the kernel's word for a path that continues below a file. The
// engine passes it on with a status of its own.
const notADirectory = "not a directory"

// Own changes owners, see sandbox.Owner. Users of a rootless engine's containers are
// others than those of this machine, and the container's root is the user.
func (c *Container) Own(ctx context.Context, dir string) error {
	uid, gid := os.Geteuid(), os.Getegid()
	if uid <= 0 { // root, or a system without such users
		return nil
	}
	if err := c.usable(ctx); err != nil {
		return err
	}
	if c.guest == nil {
		return fmt.Errorf("changing the owner of %q: %w: %w", dir, errNoGuest, sandbox.ErrUnsupported)
	}
	rootless, err := c.rootless.ask(ctx, c.api)
	if err != nil {
		return fmt.Errorf("changing the owner of %q: %w", dir, err)
	}
	if rootless {
		uid, gid = 0, 0
	}
	if err := c.guest.client.Own(ctx, dir, uid, gid); err != nil {
		return c.explain(ctx, "changing owners", err)
	}
	return nil
}

// rootless is whether an engine runs without the rights of this machine's root, in a
// user namespace. It is asked once.
type rootless struct {
	mu     sync.Mutex
	known  bool
	answer bool
}

func (r *rootless) ask(ctx context.Context, api *client.Client) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known {
		return r.answer, nil
	}
	info, err := api.Info(ctx, client.InfoOptions{})
	if err != nil {
		return false, fmt.Errorf("asking the engine whether it is rootless: %w", err)
	}
	r.known = true
	r.answer = slices.ContainsFunc(info.Info.SecurityOptions, func(o string) bool {
		return o == "name=rootless" || strings.HasPrefix(o, "name=rootless,")
	})
	return r.answer, nil
}

// Download writes a file, a link, or a directory's contents as a tar stream.
// A link in the last place is written, not followed.
func (c *Container) Download(ctx context.Context, src string, dst io.Writer) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	if !path.IsAbs(src) {
		return fmt.Errorf("downloading %q: not an absolute path", src)
	}
	if c.guest != nil {
		if err := c.guest.client.Download(ctx, src, dst); err != nil {
			return c.explain(ctx, "downloading", err)
		}
		return nil
	}
	src = path.Clean(src)
	r, err := c.api.CopyFromContainer(ctx, c.id, client.CopyFromContainerOptions{SourcePath: src})
	if cerrdefs.IsNotFound(err) || err != nil && strings.Contains(err.Error(), notADirectory) {
		if alive, _, stateErr := state(ctx, c.api, c.id); stateErr == nil && alive {
			return c.explain(ctx, "downloading", fmt.Errorf("%q: %w", src, sandbox.ErrNotExist))
		}
	}
	if err != nil {
		return c.explain(ctx, fmt.Sprintf("downloading %q", src), err)
	}
	defer func() { _ = r.Content.Close() }()
	out := tar.NewWriter(dst)
	if r.Stat.Mode.IsDir() {
		err = rewrite(out, r.Content, relativeTo(strings.TrimPrefix(path.Clean("/"+r.Stat.Name), "/")))
	} else {
		err = rewrite(out, r.Content, func(*tar.Header) (bool, error) { return true, nil })
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		return c.explain(ctx, fmt.Sprintf("downloading %q", src), err)
	}
	return nil
}

// relativeTo cuts a directory's own name off the names: the engine's archives of
// a directory begin with it, and those of the root with nothing or a point. The
// directory itself is left out.
func relativeTo(dir string) func(*tar.Header) (bool, error) {
	cut := func(name string) string {
		name = strings.TrimLeft(strings.TrimPrefix(name, "./"), "/")
		if dir == "" {
			return name
		}
		if rest, found := strings.CutPrefix(name, dir); found && (rest == "" || rest[0] == '/') {
			return strings.TrimPrefix(rest, "/")
		}
		return name
	}
	return func(h *tar.Header) (bool, error) {
		h.Name = cut(h.Name)
		if h.Typeflag == tar.TypeLink {
			h.Linkname = cut(h.Linkname)
		}
		return h.Name != "" && h.Name != ".", nil
	}
}
