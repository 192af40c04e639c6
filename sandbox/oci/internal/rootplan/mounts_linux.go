package rootplan

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// hostMounts lists what is mounted in the caller's mount namespace.
func hostMounts() ([]mountPoint, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("listing mounts: %w", err)
	}
	return parseMountInfo(string(data)), nil
}

// parseMountInfo reads the format of proc_pid_mountinfo(5).
func parseMountInfo(text string) []mountPoint {
	var mounts []mountPoint
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		fields, types := strings.Fields(before), strings.Fields(after)
		if ok && len(fields) >= 5 && len(types) >= 1 {
			mounts = append(mounts, mountPoint{path: unescapeMount(fields[4]), fsType: types[0]})
		}
	}
	return mounts
}

// unescapeMount undoes the octal escapes of blanks and backslashes.
func unescapeMount(s string) string {
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
