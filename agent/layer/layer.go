// Package layer keeps what was installed of agents' programs, so that it is installed once
// and shown to every sandbox that wants it.
//
// A [Store] is a directory of this machine. What it keeps belongs to one agent in one
// version as one file of data installs it, and to one image: an image could put anything in
// the place of what it is told to install, so that no other image gets it. Only what a
// person had built in an image of their choice, with [Store.Build] and an [Image] without
// an ID, is for all.
package layer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
)

// Store keeps layers below Dir. It may be used by several goroutines and processes.
type Store struct {
	Dir string
	// Now is the clock; it must be set.
	Now func() time.Time
}

// Image tells images apart.
type Image struct {
	// ID is of the content, or a reference; empty for what is to serve every image.
	ID string
	// Name is for people.
	Name string
}

// Layer is what was installed of one agent.
type Layer struct {
	Agent string `json:"agent"`
	// Version is the program's own word; Asked the one that was to be installed.
	Version string `json:"version"`
	Asked   string `json:"asked"`
	// Image is for people; empty where the layer serves every image.
	Image string `json:"image"`
	// Prefix is where it belongs in a sandbox; empty where the image has the program by
	// itself, and nothing was installed.
	Prefix string    `json:"prefix"`
	Built  time.Time `json:"built"`
	// Bytes is the size of its files.
	Bytes int64 `json:"bytes"`

	// Dir has its files on this machine; empty where Prefix is. General says that it was
	// built for all images; Trusted that it is known to run in the one that was asked for.
	Dir     string `json:"-"`
	General bool   `json:"-"`
	Trusted bool   `json:"-"`

	key string
}

const (
	rootDir   = "root"
	aboutFile = "layer.json"
	worksDir  = "works"
	// A layer is built in tempName + its key + tempMark + digits.
	tempName = ".building-"
	tempMark = "~"
)

// maxAbout is the size of the largest description, in bytes.
const maxAbout = 1 << 20

// limits bound what a sandbox may put on this machine.
var limits = sandbox.DownloadLimits{Bytes: 8 << 30, Entries: 1 << 20}

func (s *Store) layers() string { return filepath.Join(s.Dir, "layers") }

// Downloads is the directory for what installations fetch.
func (s *Store) Downloads() string { return filepath.Join(s.Dir, "downloads") }

// keyOf names the layer of an installation for an image.
func keyOf(in *agent.Installation, image Image) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{in.Digest, in.Version, in.Prefix, runtime.GOARCH, image.ID}, "\x00")))
	name := in.Agent
	if in.Version != "" {
		name += "-" + safe(in.Version)
	}
	return name + "-" + hex.EncodeToString(sum[:])[:16]
}

// safe is text as part of a file's name.
func safe(text string) string {
	keep := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}
	const longest = 40
	text = strings.Map(keep, text)
	return text[:min(len(text), longest)]
}

// Find returns the layer of an installation for an image: that of the image, else the one
// for all. found is false where there is neither.
func (s *Store) Find(in *agent.Installation, image Image) (l Layer, found bool) {
	if l, err := s.read(keyOf(in, image)); err == nil {
		l.Trusted = true
		return l, true
	}
	l, err := s.read(keyOf(in, Image{}))
	if err != nil {
		return Layer{}, false
	}
	l.General = true
	l.Trusted = isThere(s.workMark(l, image))
	return l, true
}

// Works notes that a layer for all images runs in one of them.
func (s *Store) Works(l Layer, image Image) error {
	if !l.General || l.Trusted {
		return nil
	}
	mark := s.workMark(l, image)
	if err := os.MkdirAll(filepath.Dir(mark), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteUnsynced(mark, nil, 0o644)
}

func (s *Store) workMark(l Layer, image Image) string {
	sum := sha256.Sum256([]byte(image.ID))
	return filepath.Join(s.layers(), l.key, worksDir, hex.EncodeToString(sum[:]))
}

func isThere(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func (s *Store) read(key string) (Layer, error) {
	dir := filepath.Join(s.layers(), key)
	data, err := bounded.ReadFile(filepath.Join(dir, aboutFile), maxAbout)
	if err != nil {
		return Layer{}, err
	}
	l := Layer{key: key}
	if err := json.Unmarshal(data, &l); err != nil {
		return Layer{}, fmt.Errorf("%s: %w", filepath.Join(dir, aboutFile), err)
	}
	if l.Prefix == "" {
		return l, nil
	}
	l.Dir = filepath.Join(dir, rootDir)
	if info, err := os.Lstat(l.Dir); err != nil || !info.IsDir() {
		return Layer{}, fmt.Errorf("%s has no directory of files", dir)
	}
	return l, nil
}

// List returns what is kept, by name. What cannot be read is left out.
func (s *Store) List() ([]Layer, error) {
	entries, err := os.ReadDir(s.layers())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing installed agents: %w", err)
	}
	var all []Layer
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempName) {
			continue
		}
		if l, err := s.read(e.Name()); err == nil {
			l.General = l.Image == ""
			all = append(all, l)
		}
	}
	return all, nil
}

// Builder makes the sandbox in which a layer is built.
type Builder struct {
	// Create makes it; Build removes it.
	Create func(ctx context.Context) (sandbox.Sandbox, error)
	// Env is what the installation works in; its Sandbox and LogDir are set by Build.
	Env agent.Env
	// Anew installs also where the image has the program, and where the layer is there:
	// sandboxes that show that one then lose what they have not opened.
	Anew bool
}

// Build installs an agent's program in a sandbox of an image and keeps it. Where the image
// has the program by itself, that is noted. A layer that is there is returned; where another
// process builds it, Build waits. Output of the installation is part of an error.
func (s *Store) Build(ctx context.Context, in *agent.Installation, image Image, b Builder) (l Layer, err error) {
	key := keyOf(in, image)
	unlock, err := s.lock(ctx, key)
	if err != nil {
		return Layer{}, fmt.Errorf("installing %s: %w", in.Agent, err)
	}
	defer unlock()
	if l, err := s.read(key); err == nil && !b.Anew {
		l.Trusted, l.General = true, image.ID == ""
		return l, nil
	}
	s.sweep(key)
	temp, err := os.MkdirTemp(s.layers(), tempName+key+tempMark)
	if err != nil {
		return Layer{}, fmt.Errorf("installing %s: %w", in.Agent, err)
	}
	defer func() { _ = os.RemoveAll(temp) }()
	if err := s.build(ctx, in, image, b, temp); err != nil {
		return Layer{}, err
	}
	if err := s.publish(temp, key); err != nil {
		return Layer{}, fmt.Errorf("keeping %s: %w", in.Agent, err)
	}
	l, err = s.read(key)
	l.Trusted, l.General = true, image.ID == ""
	return l, err
}

// publish puts a layer in its place. One that stands there is moved away first.
func (s *Store) publish(temp, key string) error {
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	place := filepath.Join(s.layers(), key)
	if err := os.Rename(place, temp+".old"); err == nil {
		defer func() { _ = os.RemoveAll(temp + ".old") }()
	}
	return os.Rename(temp, place)
}

// sweep removes what builds left that were killed. Who builds a layer holds its lock: what
// is there of one whose lock can be had, or is held by the caller for the key mine, belongs
// to nobody. What cannot be removed is let be.
func (s *Store) sweep(mine string) {
	entries, err := os.ReadDir(s.layers())
	if err != nil {
		return
	}
	for _, e := range entries {
		rest, left := strings.CutPrefix(e.Name(), tempName)
		key, _, marked := strings.Cut(rest, tempMark)
		if !left || !marked {
			continue
		}
		remove := func() { _ = os.RemoveAll(filepath.Join(s.layers(), e.Name())) }
		if key == mine {
			remove()
			continue
		}
		lock := flock.New(filepath.Join(s.locks(), key))
		if locked, err := lock.TryLock(); err == nil && locked {
			remove()
		}
		_ = lock.Close()
	}
}

func (s *Store) locks() string { return filepath.Join(s.Dir, "locks") }

// lock keeps other processes and goroutines from building the same layer.
func (s *Store) lock(ctx context.Context, key string) (unlock func(), err error) {
	if err := errors.Join(os.MkdirAll(s.locks(), 0o755), os.MkdirAll(s.layers(), 0o755)); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(s.locks(), key))
	const pause = 100 * time.Millisecond
	if _, err := lock.TryLockContext(ctx, pause); err != nil {
		return nil, fmt.Errorf("waiting for whoever installs it: %w", err)
	}
	return func() { _ = lock.Close() }, nil
}

// destroyLimit bounds the removal of the sandbox.
const destroyLimit = time.Minute

func (s *Store) build(ctx context.Context, in *agent.Installation, image Image, b Builder, dir string) (err error) {
	sb, err := b.Create(ctx)
	if err != nil {
		return fmt.Errorf("starting a sandbox to install %s in: %w", in.Agent, err)
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyLimit)
		defer cancel()
		err = errors.Join(err, sb.Destroy(end))
	}()
	l := Layer{Agent: in.Agent, Asked: in.Version, Image: image.Name, Built: s.Now().UTC().Truncate(time.Second)}
	if image.ID == "" {
		l.Image = ""
	}
	b.Env.Sandbox, b.Env.LogDir, b.Env.Downloads = sb, filepath.Join(dir, "log"), s.Downloads()
	if err := os.Mkdir(b.Env.LogDir, 0o755); err != nil {
		return err
	}
	found := false
	if !b.Anew && image.ID != "" {
		if l.Version, found, err = in.Find(ctx, b.Env); err != nil {
			return fmt.Errorf("looking for %s: %w", in.Agent, err)
		}
	}
	if !found {
		l.Prefix = in.Prefix
		if l.Version, err = in.Install(ctx, b.Env); err != nil {
			return err
		}
		if l.Bytes, err = download(ctx, sb, in.Prefix, filepath.Join(dir, rootDir)); err != nil {
			return fmt.Errorf("keeping what was installed of %s: %w", in.Agent, err)
		}
	}
	about, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return fmt.Errorf("describing what was installed of %s: %w", in.Agent, err)
	}
	return atomicfile.Write(filepath.Join(dir, aboutFile), append(about, '\n'), 0o644)
}

// download keeps a directory of a sandbox in one of this machine.
func download(ctx context.Context, sb sandbox.Sandbox, from, to string) (size int64, err error) {
	if err := os.Mkdir(to, 0o755); err != nil {
		return 0, err
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := sandbox.DownloadDir(ctx, sb, from, root, limits); err != nil {
		return 0, err
	}
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() {
			size += info.Size()
		}
		return root.Chmod(name, shown(info.Mode()))
	})
	return size, err
}

// shown is the mode of what sandboxes are shown: whoever an agent works as can read it, and
// run what its owner can, whatever the umask here and the modes there were; nobody but the
// owner can change it.
func shown(mode fs.FileMode) fs.FileMode {
	perm := mode.Perm()&^0o022 | 0o444
	if mode.IsDir() || perm&0o100 != 0 {
		perm |= 0o111
	}
	return perm
}

// Remove forgets layers of an agent and deletes their files; those of every agent where the
// name is empty. It returns what it removed. Sandboxes that show the files now keep them on
// Linux only as far as they are open: it is for when no job runs.
func (s *Store) Remove(name string) ([]Layer, error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(l Layer) bool { return name != "" && l.Agent != name })
	s.sweep("")
	for _, l := range all {
		if err := os.RemoveAll(filepath.Join(s.layers(), l.key)); err != nil {
			return nil, fmt.Errorf("removing what was installed of %s: %w", l.Agent, err)
		}
	}
	return all, nil
}

// Network is what a sandbox must reach for an installation, and as little else as the
// backend can see to.
func Network(in *agent.Installation, can sandbox.Capabilities) sandbox.Network {
	if can.Allowlist && len(in.Hosts) > 0 {
		return sandbox.Network{Mode: sandbox.NetworkAllowlist, Hosts: in.Hosts}
	}
	return sandbox.Network{Mode: sandbox.NetworkPublic}
}
