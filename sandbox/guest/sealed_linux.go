package guest

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// execSealed runs this program again from memory that nobody can change, as
// the same process, without arguments. It returns only when that fails.
func execSealed() error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("opening the program: %w", err)
	}
	fd, err := unix.MemfdCreate(programName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return errors.Join(fmt.Errorf("making memory for the program: %w", err), self.Close())
	}
	sealed := os.NewFile(uintptr(fd), programName)
	_, err = io.Copy(sealed, self)
	_ = self.Close()
	if err != nil {
		return fmt.Errorf("copying the program: %w", err)
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(sealed.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("sealing the program: %w", err)
	}
	path := fmt.Sprintf("/proc/self/fd/%d", sealed.Fd())
	return fmt.Errorf("executing the sealed program: %w", unix.Exec(path, []string{programName}, nil))
}
