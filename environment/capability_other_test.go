//go:build unix && !linux

package environment_test

import "testing"

func setCapability(*testing.T, string, []byte) {}

func hasCapability(string) bool { return false }
