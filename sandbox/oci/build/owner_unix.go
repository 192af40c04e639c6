//go:build unix

package build

import (
	"io/fs"
	"syscall"
)

// ownerOf is who has a file of an image's layer.
func ownerOf(info fs.FileInfo) owner {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return owner{int(st.Uid), int(st.Gid)}
	}
	return owner{}
}
