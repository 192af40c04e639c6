package build

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// mount is a directory or file that a RUN instruction has only while it runs.
type mount struct {
	target   string // absolute
	readOnly bool
	key      string // what it is made of
	fill     func(name string) error
	// open, when not nil, returns a directory that is there already instead.
	open func() (*image.Cache, error)
	// id of what is opened; mounts of one id share it.
	id string
}

// opened are the caches that a step has, by id.
type opened map[string]*image.Cache

func (o opened) close() error {
	var errs []error
	for id, c := range o {
		errs = append(errs, c.Close())
		delete(o, id)
	}
	return errors.Join(errs...)
}

// openAll opens the caches of mounts in the order of their ids, so that no two
// builds wait for each other.
func (o opened) openAll(mounts []mount) error {
	sorted := slices.SortedFunc(slices.Values(mounts), func(a, b mount) int { return strings.Compare(a.id, b.id) })
	for _, m := range sorted {
		if m.open == nil || o[m.id] != nil {
			continue
		}
		c, err := m.open()
		if err != nil {
			return fmt.Errorf("mount at %q: %w", m.target, err)
		}
		o[m.id] = c
	}
	return nil
}

// materialise makes the mounts' sources in a directory, and opens caches.
func materialise(dir string, mounts []mount, caches opened) ([]sandbox.Mount, error) {
	if err := caches.openAll(mounts); err != nil {
		return nil, err
	}
	out := make([]sandbox.Mount, len(mounts))
	for i, m := range mounts {
		if m.open != nil {
			out[i] = sandbox.Mount{Source: caches[m.id].Dir, Target: m.target, ReadOnly: m.readOnly}
			continue
		}
		own := filepath.Join(dir, strconv.Itoa(i))
		if err := os.Mkdir(own, 0o755); err != nil {
			return nil, err
		}
		out[i] = sandbox.Mount{Source: filepath.Join(own, mountName), Target: m.target, ReadOnly: m.readOnly}
		if err := m.fill(out[i].Source); err != nil {
			return nil, fmt.Errorf("mount at %q: %w", m.target, err)
		}
	}
	return out, nil
}

// mountName is what a mount's source is called in a directory of its own.
const mountName = "m"

// mountsOf reads the --mount flags of a RUN instruction.
func (w *worker) mountsOf(ctx context.Context, st *state, c *instructions.RunCommand, from func(string) (image.Image, error)) ([]mount, error) {
	var out []mount
	for _, m := range instructions.GetMounts(c) {
		if m.Type == instructions.MountTypeSecret || m.Type == instructions.MountTypeSSH {
			if m.Required {
				return nil, unsupported(fmt.Sprintf("--mount=type=%s with required", m.Type))
			}
			continue // there is none, as the instruction allows
		}
		target := path.Join("/", st.dir(), m.Target)
		if path.IsAbs(m.Target) {
			target = path.Clean(m.Target)
		}
		if m.Target == "" || target == "/" {
			return nil, fmt.Errorf("--mount=type=%s: it needs a target other than /", m.Type)
		}
		made, err := w.mountOf(ctx, m, target, from)
		if err != nil {
			return nil, fmt.Errorf("--mount=type=%s: %w", m.Type, err)
		}
		out = append(out, made)
	}
	return out, nil
}

func (w *worker) mountOf(ctx context.Context, m *instructions.Mount, target string, from func(string) (image.Image, error)) (mount, error) {
	switch m.Type {
	case instructions.MountTypeBind:
		return w.bindMount(ctx, m, target, from)
	case instructions.MountTypeCache:
		if m.From != "" {
			return mount{}, unsupported("a cache with from")
		}
		mode, o := fs.FileMode(0o755), owner{}
		if m.Mode != nil {
			mode = fs.FileMode(*m.Mode).Perm()
		}
		if m.UID != nil {
			o.UID = int(*m.UID)
		}
		if m.GID != nil {
			o.GID = int(*m.GID)
		}
		return w.cacheMount(ctx, m, target, mode, o), nil
	case instructions.MountTypeTmpfs:
		return emptyMount(target, m.ReadOnly, fs.ModePerm|fs.ModeSticky, owner{}), nil
	}
	return mount{}, unsupported("a mount of this type")
}

// cacheMount keeps its content between builds of the same context. Builds of others do
// not see it, whatever id they give, nor the steps that were run with it: who wrote a
// Dockerfile is not to be trusted with what others install. Mode and owner are those of
// the first use, as they are with BuildKit.
func (w *worker) cacheMount(ctx context.Context, m *instructions.Mount, target string, mode fs.FileMode, o owner) mount {
	id := fmt.Sprintf("%q %q", w.contextDir, cmp.Or(m.CacheID, target))
	sharing := image.Sharing(cmp.Or(string(m.CacheSharing), string(image.SharedCache)))
	return mount{
		id: id, target: target, readOnly: m.ReadOnly, key: fmt.Sprintf("cache %q %q %t %v %v", id, target, m.ReadOnly, mode, o),
		open: func() (*image.Cache, error) {
			c, err := w.builder.images.OpenCache(ctx, id, sharing)
			if err != nil || !c.Fresh {
				return c, err
			}
			if err := allowed(os.Lchown(c.Dir, o.UID, o.GID)); err != nil {
				return nil, errors.Join(err, c.Close())
			}
			if err := os.Chmod(c.Dir, mode); err != nil {
				return nil, errors.Join(err, c.Close())
			}
			return c, nil
		},
	}
}

func emptyMount(target string, readOnly bool, mode fs.FileMode, o owner) mount {
	return mount{
		target: target, readOnly: readOnly, key: fmt.Sprintf("empty %q %t %v %v", target, readOnly, mode, o),
		fill: func(name string) error {
			if err := os.Mkdir(name, 0o700); err != nil {
				return err
			}
			if err := allowed(os.Lchown(name, o.UID, o.GID)); err != nil {
				return err
			}
			return os.Chmod(name, mode)
		},
	}
}

// bindMount shows files of the context, a stage or an image. What the command
// writes there is dropped.
func (w *worker) bindMount(ctx context.Context, m *instructions.Mount, target string, from func(string) (image.Image, error)) (mount, error) {
	op := &copying{sources: []string{path.Join("/", m.Source)}, dest: "/" + mountName}
	source, id := tree(w.context), ""
	if m.From != "" {
		img, err := from(m.From)
		if err != nil {
			return mount{}, err
		}
		op.image = &img
		source, id = img.Files(), "image "+img.ID
	}
	p, err := layOut(op, source, image.Image{}.Files(), "/")
	if err != nil {
		return mount{}, err
	}
	digest, err := p.digest(ctx, id == "")
	if err != nil {
		return mount{}, err
	}
	return mount{
		target: target, readOnly: m.ReadOnly, key: fmt.Sprintf("bind %q %t %q %s", target, m.ReadOnly, id, digest),
		fill: func(name string) error {
			written, err := p.writeBelow(ctx, filepath.Dir(name))
			if err == nil && id == "" && written != digest {
				err = fmt.Errorf("the build context: %w", errChanges)
			}
			return err
		},
	}, nil
}

// writeBelow writes the items below a directory of the host and returns their
// digest with content.
func (p *placing) writeBelow(ctx context.Context, dir string) (digest string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	h := sha256.New()
	for i := range p.items {
		it := &p.items[i]
		it.describe(h)
		switch it.Kind {
		case kindDir:
			err = root.Mkdir(it.Name, 0o700)
		case kindLink:
			err = root.Symlink(it.Target, it.Name)
		case kindHard:
			err = root.Link(it.Target, it.Name)
		default:
			err = it.writeFile(ctx, root, h)
		}
		if err != nil {
			return "", err
		}
	}
	for _, it := range slices.Backward(p.items) { // a directory after what it holds
		if err := it.setAttributes(root); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (it *item) writeFile(ctx context.Context, root *os.Root, h io.Writer) error {
	f, err := root.OpenFile(it.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(it.copyTo(ctx, io.MultiWriter(f, h)), f.Close())
}

func (it *item) setAttributes(root *os.Root) error {
	if err := allowed(root.Lchown(it.Name, it.Owner.UID, it.Owner.GID)); err != nil || it.Kind == kindLink {
		return err
	}
	if err := root.Chmod(it.Name, fileMode(it.Mode)); err != nil || it.mtime.IsZero() {
		return err
	}
	return root.Chtimes(it.Name, it.mtime, it.mtime)
}

// allowed lets owners be where they cannot be given.
func allowed(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// fileMode is the opposite of tarMode.
func fileMode(n int64) fs.FileMode {
	m := fs.FileMode(n).Perm()
	for bit, mode := range modeBits {
		if n&bit != 0 {
			m |= mode
		}
	}
	return m
}
