package terminalbench

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/proctor-run/proctor/internal/bounded"
)

// write makes a text file of the target.
func (t *task) write(name, text string) error {
	if err := t.out.WriteFile(name, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the task: %w", err)
	}
	return nil
}

func (t *task) makeExecutable(name string) error {
	info, err := t.out.Stat(name)
	if err == nil {
		err = t.out.Chmod(name, info.Mode().Perm()|0o111)
	}
	if err != nil {
		return fmt.Errorf("writing the task: %w", err)
	}
	return nil
}

// walk visits the regular files below a directory of the source, and links to
// some, by name. Links to directories are not followed; one to outside the
// task is an error.
func (t *task) walk(dir string, visit func(name string) error) error {
	return fs.WalkDir(t.in.FS(), dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := t.in.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // a dangling link
		case err != nil:
			return fmt.Errorf("reading the task: %w", err)
		case !info.Mode().IsRegular():
			return nil
		}
		return visit(name)
	})
}

// copyTree copies the files below a directory of the source into one of the
// target.
func (t *task) copyTree(from, to string) error {
	return t.walk(from, func(name string) error {
		return t.copyFile(name, path.Join(to, strings.TrimPrefix(name, from+"/")))
	})
}

// copyFile copies a file with its permissions, over what is there.
func (t *task) copyFile(from, to string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("copying %q: %w", from, err)
		}
	}()
	in, err := bounded.OpenAt(t.in, from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := bounded.Fits(in, bounded.MaxContent)
	if err != nil {
		return err
	}
	if err := t.out.MkdirAll(path.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := t.out.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := out.Chmod(info.Mode().Perm()); err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return fmt.Errorf("writing %q: %w", to, err)
	}
	return nil
}
