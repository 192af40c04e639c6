package machine

import "golang.org/x/sys/unix"

// FreeBytes is what an ordinary user may still write to the file system of dir, if that
// is known.
func FreeBytes(dir string) (int64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * st.Bsize, true
}
