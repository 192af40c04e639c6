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

// linkedOf is which file a name leads to, where others may lead to it too.
func linkedOf(info fs.FileInfo) (file [2]uint64, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Nlink < 2 {
		return file, false
	}
	return [2]uint64{uint64(st.Dev), uint64(st.Ino)}, true //nolint:unconvert // not everywhere the same type
}
