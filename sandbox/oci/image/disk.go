package image

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/gofrs/flock"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/layerfs"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
)

// disk is the directory of a store: where its files are, and how they are read and
// written. It holds no state of what is in use.
type disk struct {
	dir      string
	session  *session
	format   layerfs.Format
	platform v1.Platform
	boot     string // see bootID
}

// openDisk makes the directory when it is missing, and removes what killed
// processes left in it.
func openDisk(dir, architecture string, log *slog.Logger) (*disk, error) {
	for _, sub := range []string{"", "layers", "images", "refs", "caches", "locks", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("opening image store: %w", err)
		}
	}
	if err := removeLeftovers(filepath.Join(dir, "tmp"), log); err != nil {
		return nil, fmt.Errorf("cleaning image store %q: %w", dir, err)
	}
	session, err := newSession(filepath.Join(dir, "tmp"))
	if err != nil {
		return nil, fmt.Errorf("opening image store %q: %w", dir, err)
	}
	d := &disk{
		dir:      dir,
		session:  session,
		format:   layerfs.ProbeFormat(session.dir),
		platform: v1.Platform{OS: "linux", Architecture: cmp.Or(architecture, runtime.GOARCH)},
		boot:     bootID(),
	}
	if err := os.MkdirAll(d.layersDir(), 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("opening image store: %w", err), session.end())
	}
	return d, nil
}

// lock is the lock of a name. It is not taken.
func (d *disk) lock(name string) *flock.Flock {
	return flock.New(filepath.Join(d.dir, "locks", name+lockSuffix), flock.SetPermissions(0o600))
}

func (d *disk) layersDir() string { return filepath.Join(d.dir, "layers", string(d.format)) }

func (d *disk) layerDir(key string) string { return filepath.Join(d.layersDir(), key) }

func (d *disk) layerLock(key string) *flock.Flock { return d.lock(string(d.format) + "-" + key) }

func (d *disk) cacheDir(key string) string { return filepath.Join(d.dir, "caches", key) }

func (d *disk) cacheLock(key string) *flock.Flock { return d.lock("cache-" + key) }

// fileKey turns a digest into a file name.
func fileKey(digest string) string { return strings.ReplaceAll(digest, ":", "-") }

func (d *disk) imageFile(id string) string { return d.imageFileIn(id, d.format) }

func (d *disk) imageFileIn(id string, f layerfs.Format) string {
	return filepath.Join(d.dir, "images", fileKey(id)+"."+string(f)+".json")
}

func (d *disk) refFile(r source.Reference) string {
	return filepath.Join(d.dir, "refs", fileKey(blob.DigestOf([]byte(r.Full())))+"."+d.platform.Architecture+".json")
}

func (d *disk) writeRef(r source.Reference, id, digest string) error {
	return d.writeJSON(d.refFile(r), refRecord{Ref: r.Full(), ID: id, Digest: digest})
}

// refRecord is how the store keeps what a reference meant.
type refRecord struct {
	Ref    string `json:"ref"`
	ID     string `json:"id"`
	Digest string `json:"digest,omitempty"`
}

// layerFile holds a layerInfo beside an unpacked layer.
const layerFile = "layer.json"

// layerInfo is what the store notes beside an unpacked layer, in layer.json.
type layerInfo struct {
	DiffID string `json:"diff_id"`
	// Boot of the machine without which the layer counts for nothing, because
	// not all of it was written out; empty for one that is on disk.
	Boot      string `json:"boot,omitempty"`
	Synthetic bool   `json:"synthetic,omitempty"`
	// OpaqueRoot: the layer hides all below it. Overlay knows no opaque root,
	// so an image leaves out what lies below.
	OpaqueRoot bool `json:"opaque_root,omitempty"`
	// Implicit are the directories that the layer has no entries for, only
	// something inside; parents before children.
	Implicit []string `json:"implicit,omitempty"`
	Notes    Notes    `json:"notes"`
}

// sealLayer notes that all of a layer is on disk. One that was removed
// meanwhile needs no seal.
func (d *disk) sealLayer(key string) error {
	at := filepath.Join(d.layerDir(key), layerFile)
	var info layerInfo
	ok, err := readJSON(at, &info)
	if err != nil || !ok || info.Boot == "" {
		return err
	}
	info.Boot = ""
	if err := d.writeJSON(at, info); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("sealing layer %s: %w", key, err)
	}
	return nil
}

// readLayer reads what the store notes of a layer. ok is false for one that is
// not there or was not written out when the machine stopped.
func (d *disk) readLayer(key string) (info layerInfo, ok bool, err error) {
	ok, err = readJSON(filepath.Join(d.layerDir(key), layerFile), &info)
	if err != nil || !ok {
		return layerInfo{}, false, err
	}
	return info, info.Boot == "" || info.Boot == d.boot, nil
}

// writeLayer notes what was found in a layer that is about to be published.
func (d *disk) writeLayer(work string, info layerInfo) error {
	info.Boot = d.boot
	data, err := json.Marshal(info)
	if err == nil {
		err = os.WriteFile(filepath.Join(work, layerFile), data, 0o600)
	}
	if err == nil && d.boot == "" {
		err = syncTree(work)
	}
	if err != nil {
		return fmt.Errorf("making a layer: %w", err)
	}
	return nil
}

// readJSON reads a file of the store. One that is missing or damaged counts as
// not there.
func readJSON(path string, into any) (bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the image store: %w", err)
	}
	return json.Unmarshal(data, into) == nil, nil
}

// writeJSON writes a file of the store, whole or not at all. It need not be on
// disk at once: what a machine that stops leaves of it counts as not there.
func (d *disk) writeJSON(path string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing to the image store: %w", err)
	}
	tmp, err := d.session.file("json-*")
	if err != nil {
		return fmt.Errorf("writing to the image store: %w", err)
	}
	_, err = tmp.Write(append(data, '\n'))
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing to the image store: %w", errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}
