//go:build unix && !linux

package environment

import "os"

// capable: files have no capabilities here.
func capable(*os.Root, string) bool { return false }
