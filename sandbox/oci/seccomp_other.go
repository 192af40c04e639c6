//go:build !amd64 && !arm64

package oci

import specs "github.com/opencontainers/runtime-spec/specs-go"

// The runtime adds the architecture it runs on.
func seccompArchitectures() []specs.Arch { return nil }
