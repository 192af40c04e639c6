//go:build !unix

package reward_test

import "testing"

func makePipe(t *testing.T, path string) {
	t.Helper()
	t.Skipf("making a pipe at %s: this system has none", path)
}
