package procfs

import (
	"bytes"
	"fmt"
	"strconv"
)

// ParseMemTotal reads how much memory a machine has, in KiB, of the text of
// /proc/meminfo.
func ParseMemTotal(text []byte) (int64, error) { return parseMemory(text, "MemTotal:") }

// ParseAnonPages reads how much of it belongs to no file, in KiB. With gVisor's kernel
// that is all that is not read from a file, memory that is shared included.
func ParseAnonPages(text []byte) (int64, error) { return parseMemory(text, "AnonPages:") }

func parseMemory(text []byte, name string) (int64, error) {
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte(name))
		if !ok {
			continue
		}
		fields := bytes.Fields(rest)
		if len(fields) != 2 || string(fields[1]) != "kB" {
			break
		}
		kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
		if err != nil {
			break
		}
		return kib, nil
	}
	return 0, fmt.Errorf("expected a line such as \"%s 2048 kB\"", name)
}
