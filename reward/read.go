package reward

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/value"
)

// The names of the reward files, in the order in which they are looked for.
const (
	JSONFile = "reward.json"
	TextFile = "reward.txt"
)

// MaxFileSize is the largest reward file that is read, in bytes. Harbor has no
// bound; real files are a few dozen bytes, and this many is room for a million
// rewards.
const MaxFileSize = 16 << 20

// Read returns the rewards in a verifier's directory on the host: those of
// reward.json, else of reward.txt. Nil without an error means that reward.json
// says null.
//
// It takes a link that dangles for absent, like Harbor, and what has size 0, pipes and
// devices included, is empty and never opened. Unlike Harbor it follows no link out of
// the directory that dir is in, which is the trial's: sandboxes write to dir, and what
// is read from it is published. Such a link is an error of kind [Tampered] that has no
// byte of its target. Errors are *[Error]. (Reward semantics, section 2.)
func Read(dir string) (*Rewards, error) {
	jsonPath, textPath := filepath.Join(dir, JSONFile), filepath.Join(dir, TextFile)
	for _, candidate := range []struct {
		path  string
		parse func([]byte, string) (*Rewards, error)
	}{
		{jsonPath, ParseJSON},
		{textPath, ParseText},
	} {
		info, err := os.Stat(candidate.path)
		if absent(err) {
			continue
		}
		if err != nil {
			return nil, osError(err, candidate.path)
		}
		data, err := readFile(candidate.path, info)
		if err != nil {
			return nil, err
		}
		return candidate.parse(data, candidate.path)
	}
	return nil, &Error{Kind: NotFound, Message: fmt.Sprintf("No reward file found at %s or %s", textPath, jsonPath)}
}

// absent reports whether the error of a stat says that nothing is there.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

func readFile(path string, info fs.FileInfo) ([]byte, error) {
	switch {
	case info.Size() == 0:
		return nil, &Error{Kind: Empty, Message: "Reward file is empty at " + path}
	case info.IsDir():
		return nil, osError(syscall.EISDIR, path)
	case !info.Mode().IsRegular():
		return nil, notRegular(path)
	}
	f, err := bounded.OpenIn(filepath.Dir(filepath.Dir(path)), filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path)))
	switch {
	case errors.Is(err, bounded.ErrLeadsOut):
		return nil, &Error{Kind: Tampered, Message: "Reward file is a link out of the trial's directory at " + path}
	case errors.Is(err, bounded.ErrNotRegular):
		return nil, notRegular(path) // a moment ago it was a file
	case err != nil:
		return nil, osError(err, path)
	}
	defer func() { _ = f.Close() }()
	data, err := bounded.Read(f, MaxFileSize)
	switch {
	case errors.Is(err, bounded.ErrTooLarge):
		return nil, &Error{Kind: TooLarge, Message: fmt.Sprintf("Reward file is larger than %d bytes at %s", MaxFileSize, path)}
	case err != nil:
		return nil, osError(err, path)
	}
	return data, nil
}

func notRegular(path string) error {
	return &Error{Kind: Unreadable, Message: "Reward file is not a regular file at " + path}
}

// osError gives an error of the host the class and text that Python gives it.
func osError(err error, path string) *Error {
	e := &Error{Kind: Unreadable, Message: err.Error(), Cause: err}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		text := errno.Error()
		e.Message = fmt.Sprintf("[Errno %d] %s: %s", int(errno), strings.ToUpper(text[:1])+text[1:], value.Repr(value.Str(path)))
	}
	switch {
	case errors.Is(err, syscall.EISDIR):
		e.Kind = IsDirectory
	case errors.Is(err, fs.ErrPermission):
		e.Kind = NotAllowed
	}
	return e
}
