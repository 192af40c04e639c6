//go:build !linux

package sandboxes

import "context"

// staticGuest is the running program: only Linux has sandboxes that need more.
func staticGuest(self string) (string, error) { return self, nil }

// gvisorOf is nothing: only Linux has sandboxes with it.
func gvisorOf(context.Context, Options, string, string) (string, error) { return "", nil }

// builtGuest has no sandboxes to build for.
func builtGuest(context.Context, Options, string) string { return "" }
