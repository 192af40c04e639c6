package source

import (
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/sandbox"
)

// MissingError says that a source has not got an image. It is
// sandbox.ErrImageNotFound.
type MissingError struct {
	Ref string
	// Looked names the places that were asked, in order, each with its answer.
	Looked []string
}

func (e *MissingError) Error() string { return strings.Join(e.Looked, "; ") }

// Unwrap makes errors.Is find sandbox.ErrImageNotFound.
func (e *MissingError) Unwrap() error { return sandbox.ErrImageNotFound }

// PlatformError says that an image exists, but not for this machine. It is
// sandbox.ErrImageNotFound.
type PlatformError struct {
	Ref  string
	Want string   // "linux/amd64"
	Have []string // what the image has instead
}

func (e *PlatformError) Error() string {
	if len(e.Have) == 0 {
		return fmt.Sprintf("image %q has no variant for %s, nor for anything else", e.Ref, e.Want)
	}
	return fmt.Sprintf("image %q has no variant for %s, only for %s", e.Ref, e.Want, strings.Join(e.Have, ", "))
}

// Unwrap makes errors.Is find sandbox.ErrImageNotFound.
func (e *PlatformError) Unwrap() error { return sandbox.ErrImageNotFound }

// UnauthorizedError says that a registry refused to give an image out. Many
// registries answer this also for what does not exist.
type UnauthorizedError struct {
	Ref      string
	Registry string
	Err      error
}

func (e *UnauthorizedError) Error() string {
	return fmt.Sprintf("registry %s refuses access to %q: %v", e.Registry, e.Ref, e.Err)
}

func (e *UnauthorizedError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *UnauthorizedError) Hint() string {
	return fmt.Sprintf("check that the image exists; if it is private, log in with: docker login %s", e.Registry)
}

// UnreachableError says that a registry could not be asked.
type UnreachableError struct {
	Ref      string
	Registry string
	Err      error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("asking registry %s for %q: %v", e.Registry, e.Ref, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Retryable reports that another attempt later may succeed.
func (e *UnreachableError) Retryable() bool { return true }

// Hint says what to do about it.
func (e *UnreachableError) Hint() string {
	return "check the network and the proxy; to work without a network, give an OCI layout directory that holds the image"
}
