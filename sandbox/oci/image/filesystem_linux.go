package image

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// topDirFlag is FS_TOPDIR_FL of the kernel's linux/fs.h.
const topDirFlag = 0x00020000

// spread asks the file system to keep directories that are made in dir far from
// each other ("chattr +T", ext2 to ext4). Without it they all take their inodes
// from dir's own block group, and ext4 looks one by one at each that was freed
// there in the last minute before it takes one: where layers come and go, making
// a file costs fifty times as much. It is no more than a wish, which file
// systems that do not know it refuse.
func spread(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		return
	}
	_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags|topDirFlag))
}

// syncTree makes the file system that holds dir write out what it has.
func syncTree(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}
