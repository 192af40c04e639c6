package environment_test

import (
	"testing"

	"golang.org/x/sys/unix"
)

func setCapability(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := unix.Setxattr(path, "security.capability", data, 0); err != nil {
		t.Logf("files have no capabilities here: %v", err)
	}
}

func hasCapability(path string) bool {
	_, err := unix.Getxattr(path, "security.capability", nil)
	return err == nil
}
