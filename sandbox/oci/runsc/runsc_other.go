//go:build !linux

package runsc

// Reexec does nothing on this system.
func Reexec(_ []string, _ string) (code int, handled bool) { return 0, false }
