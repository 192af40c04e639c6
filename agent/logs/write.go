package logs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/bounded"
)

// WriteFile writes the trajectory, which must be there, to a file, and its images beside
// it: those first, so that the file never names one that is not there. The directory may be
// one that an agent wrote to: no link in it is followed. change, when it is not nil, is
// applied to the file's content.
func (c *Converted) WriteFile(file string, change func([]byte) []byte) error {
	data := c.Trajectory.Append(nil, c.Style)
	if change != nil {
		data = change(data)
	}
	dir := filepath.Dir(file)
	root, err := bounded.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("opening the trajectory's directory: %w", err)
	}
	defer func() { _ = root.Close() }()
	for _, image := range c.Images {
		err := root.MkdirAll(path.Dir(image.Path), 0o755)
		if err == nil {
			err = root.Remove(image.Path)
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = root.WriteFile(image.Path, image.Data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("writing an image: %w", err)
		}
	}
	return atomicfile.WriteIn(dir, filepath.Base(file), data, 0o644)
}
