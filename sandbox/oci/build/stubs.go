package build

import (
	"archive/tar"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// ownDirs are directories that every sandbox has mounted for itself, whatever its image
// has there.
var ownDirs = []string{"dev", "proc", "sys"}

// asides are those, and the one that gVisor mounts where an image has nothing in it.
var asides = append(slices.Clone(ownDirs), "tmp")

// asideDir is where files that belong below asides are written in a sandbox. There
// they would come into what is mounted, and not into the image.
const asideDir = ".proctor-aside"

// layerWriter writes entries that are unpacked in the root of a sandbox.
type layerWriter struct {
	*tar.Writer
	root  tree            // that of the image
	begun map[string]bool // directories that are written aside, by their names in the image
}

// header begins an entry, aside where its place is the sandbox's own.
func (w *layerWriter) header(hdr *tar.Header) error {
	if hdr.Typeflag == tar.TypeLink {
		hdr.Linkname, _ = aside(hdr.Linkname)
	}
	written, is := aside(hdr.Name)
	if is {
		name := path.Clean(hdr.Name)
		if err := w.begin(path.Dir(name)); err != nil {
			return err
		}
		w.begun[name] = true
	}
	hdr.Name = written
	return w.write(hdr)
}

// begin writes a directory of the image and those that it is in as they are: what lies
// over them must not change them.
func (w *layerWriter) begin(dir string) error {
	if dir == "." || w.begun[dir] {
		return nil
	}
	if err := w.begin(path.Dir(dir)); err != nil {
		return err
	}
	w.begun[dir] = true
	info, err := lstat(w.root, dir)
	if err != nil || info == nil || !info.IsDir() {
		return err
	}
	name, _ := aside(dir)
	o := ownerOf(info)
	return w.write(&tar.Header{
		Typeflag: tar.TypeDir, Name: name + "/", Mode: tarMode(info.Mode()),
		Uid: o.UID, Gid: o.GID, ModTime: info.ModTime(), Format: tar.FormatPAX,
	})
}

func (w *layerWriter) write(hdr *tar.Header) error {
	if err := w.WriteHeader(hdr); err != nil {
		return fmt.Errorf("writing a header: %w", err)
	}
	return nil
}

// aside is where an entry is written, and whether that is aside.
func aside(name string) (written string, is bool) {
	top, _, _ := strings.Cut(name, "/")
	if !slices.Contains(asides, top) {
		return name, false
	}
	return asideDir + "/" + name, true
}

// settle removes what the runtime made to mount on, and moves what was written aside to
// its place.
func settle(upper string, base image.Image) error {
	if err := removeStubs(upper, base, nil); err != nil {
		return err
	}
	root, err := os.OpenRoot(upper)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, name := range asides {
		if err := move(root, path.Join(asideDir, name), name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return root.RemoveAll(asideDir)
}

// move renames what may be a directory without the permission to write, which only root
// can give another parent. It takes the place of a directory that was mounted on.
func move(root *os.Root, from, to string) error {
	info, err := root.Lstat(from)
	if err != nil {
		return err
	}
	if err := root.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !info.IsDir() {
		return root.Rename(from, to)
	}
	if err := root.Chmod(from, 0o700); err != nil {
		return err
	}
	return errors.Join(root.Rename(from, to), root.Chmod(to, info.Mode()))
}

// removeStubs removes what the runtime made in the image to mount on: on the targets of
// a step's mounts, and on ownDirs. Nothing that a step does gets there.
func removeStubs(upper string, base image.Image, targets []string) error {
	root, err := os.OpenRoot(upper) // what is in it may lead anywhere
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	files := base.Files()
	for _, target := range slices.Backward(slices.Concat(ownDirs, targets)) {
		name, info, err := resolve(files, target)
		for err == nil && info == nil && name != "." {
			made, lerr := root.Lstat(name)
			if lerr != nil || !made.IsDir() && (!made.Mode().IsRegular() || made.Size() > 0) {
				break
			}
			if root.Remove(name) != nil {
				break // not empty: it is the command's now
			}
			name = path.Dir(name)
			info, err = lstat(files, name)
		}
	}
	return nil
}
