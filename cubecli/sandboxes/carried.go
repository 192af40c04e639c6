package sandboxes

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/sandbox/oci"
)

// What sandboxes need beside the program lies beside it in packages, and a program that is
// a single file carries it, see Options.Helpers.

// packaged returns the helper of a name that lies beside this program, or that this one
// carries, unpacked into the cache; empty where there is none.
func packaged(o Options, self, cache, name string) (string, error) {
	if beside := programBeside(self, name); beside != "" || !o.carries(name) {
		return beside, nil
	}
	path, err := o.unpacked(cache, name)
	if err != nil {
		return "", fmt.Errorf("unpacking %s, which this program carries: %w", name, err)
	}
	return path, nil
}

// isPackaged reports whether packaged has something to return.
func isPackaged(o Options, self, name string) bool {
	return programBeside(self, name) != "" || o.carries(name)
}

// programBeside is a program of that name beside this one, or nothing.
func programBeside(self, name string) string {
	path := filepath.Join(filepath.Dir(self), name)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return ""
	}
	return path
}

// Extensions of what a program carries.
const (
	packedExt = ".gz"
	digestExt = ".sha256"
)

func (o Options) carries(name string) bool {
	if o.Helpers == nil {
		return false
	}
	_, err := fs.Stat(o.Helpers, name+packedExt)
	return err == nil
}

// unpacked returns where in the cache the helper is that this program carries.
func (o Options) unpacked(cache, name string) (string, error) {
	text, err := fs.ReadFile(o.Helpers, name+digestExt)
	if err != nil {
		return "", fmt.Errorf("reading its digest: %w", err)
	}
	want := strings.TrimSpace(string(text))
	if sum, err := hex.DecodeString(want); err != nil || len(sum) != sha256.Size {
		return "", fmt.Errorf("%s%s is no digest", name, digestExt)
	}
	builds := filepath.Join(cache, buildsDir)
	path, now := filepath.Join(builds, want[:32], name), clock.Or(o.Now)()
	if inUse(path, now) {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("making its directory: %w", err)
	}
	if err := atomicfile.WriteFrom(path, 0o755, func(w io.Writer) error { return o.unpack(w, name, want) }); err != nil {
		return "", err
	}
	removeOldBuilds(builds, now)
	return path, nil
}

// unpack fails unless what it wrote has the digest.
func (o Options) unpack(w io.Writer, name, want string) error {
	f, err := o.Helpers.Open(name + packedExt)
	if err != nil {
		return fmt.Errorf("opening it: %w", err)
	}
	defer func() { _ = f.Close() }()
	r, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("decompressing: %w", err)
	}
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, sum), r); err != nil {
		return fmt.Errorf("decompressing: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return errors.New("it has another digest than it had when it was packed")
	}
	return nil
}

// buildsDir holds the helpers in the cache.
const buildsDir = "builds"

// buildLife is how long a helper that nobody uses is kept.
const buildLife = 7 * 24 * time.Hour

// inUse reports whether the program is there, and notes that it is in use.
func inUse(path string, now time.Time) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if now.Sub(info.ModTime()) > buildLife/7 {
		_ = os.Chtimes(path, now, now) // somebody else's cache; it is made again one day
	}
	return true
}

// removeOldBuilds removes what earlier builds of the program used.
func removeOldBuilds(dir string, now time.Time) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	names := []string{oci.GuestArg0, runscName, foreignGuest("amd64"), foreignGuest("arm64")}
	for _, d := range list {
		unused, used := false, false
		for _, name := range names {
			if info, err := os.Stat(filepath.Join(dir, d.Name(), name)); err == nil {
				unused = now.Sub(info.ModTime()) > buildLife
				used = used || !unused
			}
		}
		if unused && !used {
			_ = os.RemoveAll(filepath.Join(dir, d.Name())) // if it fails it is tried after the next build
		}
	}
}
