// Package mountinfo lists what is mounted on this machine.
package mountinfo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// Mount is a line of a file mountinfo.
type Mount struct {
	ID   string
	Path string
	Type string // of its file system
}

// Read lists what is mounted in the mount namespace of the calling thread, which may
// have one of its own: nothing on systems that
// do not say.
func Read() ([]Mount, error) {
	data, err := os.ReadFile("/proc/thread-self/mountinfo")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing mounts: %w", err)
	}
	return Parse(string(data)), nil
}

// Parse reads the format of proc_pid_mountinfo(5).
func Parse(text string) []Mount {
	var mounts []Mount
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		fields, types := strings.Fields(before), strings.Fields(after)
		if ok && len(fields) >= 5 && len(types) >= 1 {
			mounts = append(mounts, Mount{ID: fields[0], Path: unescape(fields[4]), Type: types[0]})
		}
	}
	return mounts
}

// Below selects the mounts that lie below a directory, not the one at it.
func Below(mounts []Mount, dir string) []Mount {
	var below []Mount
	for _, m := range mounts {
		if m.Path != dir && strings.HasPrefix(m.Path, strings.TrimSuffix(dir, "/")+"/") {
			below = append(below, m)
		}
	}
	return below
}

// unescape undoes the octal escapes of blanks and backslashes.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
