package oci

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox/oci/internal/rootplan"
)

// record is owner.json: it stands in a sandbox's directory before anything
// else of the sandbox exists anywhere.
type record struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Backend string    `json:"backend"`
	Runtime string    `json:"runtime"`
	Job     string    `json:"job,omitempty"`
	Trial   string    `json:"trial,omitempty"`
	Owner   procid.ID `json:"owner"`
}

// sandboxesDir holds the sandboxes' directories below the state directory.
const sandboxesDir = "sandboxes"

// newID names a sandbox. It is found in command lines and mounts, so that it
// must not occur in others by chance, and short, because socket paths are.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return "p" + hex.EncodeToString(b[:])
}

// newRecord makes a sandbox's directory with its record.
func newRecord(stateDir string, r record) (dir string, err error) {
	parent := filepath.Join(stateDir, sandboxesDir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	dir = filepath.Join(parent, r.ID)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, fileOwner), append(data, '\n'), 0o600)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

func readRecord(dir string) (record, error) {
	var r record
	data, err := os.ReadFile(filepath.Join(dir, fileOwner))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("reading %q: %w", filepath.Join(dir, fileOwner), err)
	}
	if r.Owner.BootID == "" || r.Owner.PID <= 0 {
		return r, fmt.Errorf("reading %q: it names no owner", filepath.Join(dir, fileOwner))
	}
	return r, nil
}

// removeTree removes a directory in which no process works any more. The
// record goes last, so that an interrupted removal is found again.
func removeTree(dir string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, d := range list {
		if d.Name() == fileOwner {
			continue
		}
		if d.Name() == rootplan.DirWork {
			openWork(filepath.Join(dir, rootplan.DirWork))
		}
		if err := os.RemoveAll(filepath.Join(dir, d.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// openWork makes accessible what overlays keep inaccessible.
func openWork(dir string) {
	found, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
	for _, f := range found {
		_ = os.Chmod(f, 0o700) // if it matters the removal fails
	}
}
