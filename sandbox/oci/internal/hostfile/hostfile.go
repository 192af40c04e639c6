// Package hostfile reads small files of the host.
package hostfile

import (
	"io"
	"os"
)

// limit bounds what is read of one, in bytes.
const limit = 1 << 20

// Small returns a host file's content up to a megabyte, or nothing when it cannot be
// read.
func Small(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return ""
	}
	return string(data)
}
