package verify

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/sandbox"
)

// Names of the reward files, in the order in which they count.
var rewardNames = [...]string{reward.JSONFile, reward.TextFile}

// hashLimit bounds what is read of a reward file, in bytes.
const hashLimit = 16 << 20

// RewardFiles describes the reward files of a directory on the host, which may
// be one that a sandbox writes to at the same time.
func RewardFiles(dir string) []reward.File {
	found := []reward.File{}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return found
	}
	defer func() { _ = root.Close() }()
	for _, name := range rewardNames {
		info, err := root.Lstat(name)
		if err != nil {
			continue
		}
		f := reward.File{
			Name: name, Kind: kindOf(info.Mode()), Bytes: info.Size(),
			Mode: octal(info.Mode()), ModTime: info.ModTime().UnixNano(),
		}
		f.Links, f.UID = ownership(info)
		if info.Mode().IsRegular() {
			f.SHA256 = hashFile(root, name, info)
		}
		found = append(found, f)
	}
	return found
}

// hashFile is empty unless the file is still the one that was seen.
func hashFile(root *os.Root, name string, seen fs.FileInfo) string {
	f, err := bounded.OpenAt(root, name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !os.SameFile(info, seen) {
		return ""
	}
	return hash(f)
}

func hash(r io.Reader) string {
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(r, hashLimit+1))
	if err != nil || n > hashLimit {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func octal(mode fs.FileMode) string { return fmt.Sprintf("%04o", mode.Perm()) }

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "file"
	case mode&fs.ModeSymlink != 0:
		return "link"
	}
	return "other"
}

// look describes the reward files as they are now: on the host, or in a sandbox
// whose files the host does not see.
func look(ctx context.Context, sb sandbox.Sandbox, spec Spec) ([]reward.File, error) {
	if spec.Mounted {
		return RewardFiles(spec.LogDir), nil
	}
	found := []reward.File{}
	for _, name := range rewardNames {
		f, err := lookInside(ctx, sb, name)
		if errors.Is(err, sandbox.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("looking at %s: %w", name, err)
		}
		found = append(found, f)
	}
	return found, nil
}

func lookInside(ctx context.Context, sb sandbox.Sandbox, name string) (reward.File, error) {
	f := reward.File{Name: name, Kind: "other", Links: -1, UID: -1}
	var archive bytes.Buffer
	err := sb.Download(ctx, path.Join(LogDir, name), &capped{w: &archive, left: hashLimit + 64<<10})
	if err != nil && !errors.Is(err, errTooLarge) {
		return f, err
	}
	r := tar.NewReader(&archive)
	h, err := r.Next()
	if err != nil {
		return f, nil // an empty directory, or nothing that a tar stream holds
	}
	info := h.FileInfo()
	f.Bytes, f.Mode, f.UID, f.ModTime = h.Size, octal(info.Mode()), int64(h.Uid), h.ModTime.UnixNano()
	if path.Base(h.Name) == name {
		f.Kind = kindOf(info.Mode())
	}
	if h.Typeflag == tar.TypeReg {
		f.SHA256 = hash(r)
	}
	return f, nil
}

var errTooLarge = errors.New("larger than a reward file can be")

type capped struct {
	w    io.Writer
	left int
}

func (c *capped) Write(p []byte) (int, error) {
	if len(p) > c.left {
		return 0, errTooLarge
	}
	c.left -= len(p)
	return c.w.Write(p)
}

// nanoseconds by a clock that may be absent.
func nanoseconds(now func() time.Time) int64 {
	if now == nil {
		return 0
	}
	return now().UnixNano()
}
