package ownrunner

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/value"
)

// Manifest pins what tasks hold, given from outside of the place where they lie: task
// id to [TaskDigest]. As JSON it is an object of 64 lower-case hex digits each.
type Manifest map[string]string

// TaskDigest is the SHA-256, in hex digits, of the names and contents of all regular
// files below a task's directory: of "<path>\0<sha256 of the content>\n" for each, in
// the order of their paths, which compare name by name. Links are skipped, and so is
// what is no file. (Outcome mapping, section 12.)
func TaskDigest(dir string) (string, error) {
	files, err := contentDigests(dir)
	if err != nil {
		return "", err
	}
	names := slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
	})
	all := sha256.New()
	for _, name := range names {
		_, _ = fmt.Fprintf(all, "%s\x00%s\n", name, files[name]) // a hash takes everything
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

// contentDigests returns the digests of the files of a directory, by their paths.
func contentDigests(dir string) (map[string]string, error) {
	files := map[string]string{}
	var errs []error
	bounded.Walk(dir, func(p bounded.Place, e fs.DirEntry) error {
		switch {
		case e.IsDir():
			return p.Enter(e.Name())
		case !e.Type().IsRegular():
			return nil
		}
		sum, err := contentDigest(p.Root, e.Name())
		files[p.Name(e.Name())] = sum
		return err
	}, func(name string, err error) {
		errs = append(errs, fmt.Errorf("reading %s of %q: %w", name, dir, err))
	})
	return files, errors.Join(errs...)
}

func contentDigest(in *os.Root, name string) (string, error) {
	f, err := bounded.OpenAt(in, name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	return bounded.SHA256(f)
}

// maxManifest bounds a manifest: a hundred bytes for each of a million tasks.
const maxManifest = 100 << 20

// ReadManifest reads the file of a manifest, see [ParseManifest], until ctx ends.
func ReadManifest(ctx context.Context, path string) (Manifest, error) {
	data, err := bounded.ReadFileContext(ctx, path, maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := ParseManifest(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// ParseManifest reads a manifest, strictly: an object without a name twice, and digests
// of 64 lower-case hex digits.
func ParseManifest(data []byte) (Manifest, error) {
	m := Manifest{}
	d := json.NewDecoder(bytes.NewReader(data))
	err := m.read(d)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the object")
		}
	}
	if err != nil {
		line := 1 + bytes.Count(data[:min(d.InputOffset(), int64(len(data)))], []byte("\n"))
		return nil, fmt.Errorf("reading the digest manifest: line %d: %w", line, err)
	}
	return m, nil
}

// read reads the object token by token: decoders keep the last of several members of
// one name.
func (m Manifest) read(d *json.Decoder) error {
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return errors.Join(errNoObject, err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return errors.Join(errNoObject, err)
		}
		task, _ := key.(string)
		var digest string
		if err := d.Decode(&digest); err != nil {
			return fmt.Errorf("%q: expected a digest: %w", task, err)
		}
		switch {
		case task == "":
			return errors.New("a task has no name")
		case !isDigest(digest):
			return fmt.Errorf("%q: expected 64 lower-case hex digits, got %.80q", task, digest)
		case m[task] != "":
			return fmt.Errorf("%q comes twice", task)
		}
		m[task] = digest
	}
	_, err := d.Token()
	return err //nolint:wrapcheck // ParseManifest says where
}

var errNoObject = errors.New("expected an object of tasks and digests")

func isDigest(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == sha256.Size && strings.ToLower(text) == text
}

// AppendJSON appends the manifest as it is written, sorted by task.
func (m Manifest) AppendJSON(dst []byte) []byte {
	obj := value.NewObject(len(m))
	for _, task := range slices.Sorted(maps.Keys(m)) {
		obj.Append(task, value.Str(m[task]))
	}
	return append(value.AppendDumps(dst, obj, value.DumpsOptions{Indent: 2}), '\n')
}

// ErrDigestMismatch is wrapped by the error of a task that is not what was pinned.
var ErrDigestMismatch error = exception.New("DigestMismatch", "DigestMismatch")

// Check compares a task with what is pinned for it: for its id, or for the last part of
// an id with slashes. A task that is not pinned is an error, like one that differs.
func (m Manifest) Check(task, digest string) error {
	want, ok := m[task]
	if !ok {
		want, ok = m[task[strings.LastIndexByte(task, '/')+1:]]
	}
	switch {
	case !ok:
		return fmt.Errorf("%w: task %q is not in the manifest", ErrDigestMismatch, task)
	case want != digest:
		return fmt.Errorf("%w: task %q has digest %s, and %s is pinned", ErrDigestMismatch, task, digest, want)
	}
	return nil
}
