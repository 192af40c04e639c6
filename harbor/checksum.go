package harbor

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
)

// Checksum returns the content hash of a task directory that trial results
// record (section 2.1): hex SHA-256 over names and bytes of all files, hidden
// ones too, links followed. Modes, times and empty directories do not count.
func Checksum(dir string) (string, error) {
	real, err := resolve(dir)
	if err != nil {
		return "", err
	}
	w := walker{seen: map[string]*node{}, open: map[string]string{}}
	root, err := w.dir(strings.TrimRight(dir, "/")+"/", real)
	if err != nil {
		return "", err
	}
	if err := hashFiles(w.files); err != nil {
		return "", err
	}
	sum, err := root.sum()
	if err != nil {
		return "", err
	}
	if sum == "" {
		return "", exception.Errorf(exception.ValueError, "%s: Nothing to hash", dir)
	}
	return sum, nil
}

// node is a directory to hash. A directory that several links lead to is one
// node: its content does not depend on the way to it.
type node struct {
	files []*file
	dirs  []subdir
	once  sync.Once
	hash  string // empty when there is nothing to hash
	err   error
}

type subdir struct {
	name string
	node *node
}

// file is a file to hash.
type file struct {
	name, path string
	hash       string // hex
}

// walker collects a tree. It is used by one goroutine.
type walker struct {
	seen  map[string]*node  // by real path
	open  map[string]string // real paths of the directories being entered, as they were reached
	files []*file
}

// dir collects the directory at path, whose real path is known.
func (w *walker) dir(path, real string) (*node, error) {
	if first, ok := w.open[real]; ok {
		return nil, exception.Errorf(exception.SymlinkRecursionError, "Symlink recursion: Real path '%s' was encountered at '%s' and then '%s'.",
			real, first, path)
	}
	if n, ok := w.seen[real]; ok {
		return n, nil
	}
	w.open[real] = path
	defer delete(w.open, real)
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, osError(path, err)
	}
	n := &node{}
	for _, entry := range entries {
		if err := w.entry(n, entry, path, real); err != nil {
			return nil, err
		}
	}
	w.seen[real] = n
	return n, nil
}

func (w *walker) entry(n *node, entry fs.DirEntry, parent, parentReal string) error {
	path := filepath.Join(parent, entry.Name())
	mode, real := entry.Type(), filepath.Join(parentReal, entry.Name())
	if mode&fs.ModeSymlink != 0 {
		var err error
		if mode, real, err = followed(path, real); err != nil {
			return err
		}
	}
	switch {
	case mode.IsDir():
		inner, err := w.dir(path, real)
		if err != nil {
			return err
		}
		n.dirs = append(n.dirs, subdir{entry.Name(), inner})
	case mode.IsRegular():
		f := &file{name: entry.Name(), path: path}
		n.files = append(n.files, f)
		w.files = append(w.files, f)
	}
	return nil
}

// followed returns the mode of what the symlink at path leads to, and the real
// path of it where it is a directory. A link that dangles leads to an irregular
// file: it does not count.
func followed(path, real string) (fs.FileMode, string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fs.ModeIrregular, real, nil
	}
	if err != nil {
		return 0, "", osError(path, err)
	}
	if info.IsDir() {
		if real, err = filepath.EvalSymlinks(path); err != nil {
			return 0, "", osError(path, err)
		}
	}
	return info.Mode(), real, nil
}

// hashFiles computes the hashes of many files at a time.
func hashFiles(files []*file) error {
	var g errgroup.Group
	workers := min(runtime.GOMAXPROCS(0), len(files))
	for i := range workers {
		g.Go(func() error {
			buf := make([]byte, 128<<10)
			for k := i; k < len(files); k += workers {
				if err := files[k].compute(buf); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func (f *file) compute(buf []byte) error {
	in, err := bounded.OpenRegular(f.path)
	if err != nil {
		return osError(f.path, err)
	}
	defer func() { _ = in.Close() }()
	if _, err := bounded.Fits(in, bounded.MaxContent); err != nil {
		return osError(f.path, err)
	}
	h := sha256.New()
	// The wrappers keep CopyBuffer from choosing a way that ignores buf.
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{in}, buf); err != nil {
		return osError(f.path, err)
	}
	f.hash = hex.EncodeToString(h.Sum(nil))
	return nil
}

// sum returns the hash of a directory, or nothing for one without files.
func (n *node) sum() (string, error) {
	n.once.Do(func() { n.hash, n.err = n.compute() })
	return n.hash, n.err
}

func (n *node) compute() (string, error) {
	var entries []string
	for _, f := range n.files {
		entries = append(entries, "data:"+f.hash+"\x00name:"+f.name)
	}
	for _, d := range n.dirs {
		sum, err := d.node.sum()
		if err != nil {
			return "", err
		}
		if sum != "" {
			entries = append(entries, "dirhash:"+sum+"\x00name:"+d.name)
		}
	}
	if len(entries) == 0 {
		return "", nil
	}
	for _, entry := range entries {
		if err := checkEncodable(entry); err != nil {
			return "", err
		}
	}
	slices.SortFunc(entries, cmp.Compare[string])
	sum := sha256.Sum256([]byte(strings.Join(entries, "\x00\x00")))
	return hex.EncodeToString(sum[:]), nil
}

// checkEncodable rejects file names that are not UTF-8, which Python cannot
// encode.
func checkEncodable(name string) error {
	if utf8.ValidString(name) {
		return nil
	}
	return exception.Errorf(exception.UnicodeEncodeError, "'utf-8' codec can't encode the file name %q: surrogates not allowed",
		name[strings.LastIndexByte(name, 0)+1:])
}
