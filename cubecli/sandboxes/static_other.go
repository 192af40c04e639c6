//go:build !linux

package sandboxes

import "context"

// staticProgram is the running program: only Linux has sandboxes that need
// more.
func staticProgram(_ context.Context, _ Options, self, _ string) (string, error) { return self, nil }

// builtGuest has no sandboxes to build for.
func builtGuest(context.Context, Options, string) string { return "" }
