//go:build unix

package bounded

import (
	"io/fs"
	"syscall"
)

func hasSecondName(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}
