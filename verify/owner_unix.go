//go:build unix

package verify

import (
	"io/fs"
	"syscall"
)

func ownership(info fs.FileInfo) (links, uid int64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, -1
	}
	return int64(st.Nlink), int64(st.Uid) //nolint:unconvert // the field's width differs between systems
}
