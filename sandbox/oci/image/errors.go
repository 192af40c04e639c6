package image

import (
	"errors"
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/sandbox"
)

// NotFoundError says that no source has an image. It is sandbox.ErrImageNotFound.
type NotFoundError struct {
	Ref string
	// Looked names the places that were asked, in order, each with its answer.
	Looked []string
}

func (e *NotFoundError) Error() string {
	if len(e.Looked) == 0 {
		return fmt.Sprintf("image %q not found", e.Ref)
	}
	return fmt.Sprintf("image %q not found: %s", e.Ref, strings.Join(e.Looked, "; "))
}

// Unwrap makes errors.Is find sandbox.ErrImageNotFound.
func (e *NotFoundError) Unwrap() error { return sandbox.ErrImageNotFound }

// Hint says what to do about it.
func (e *NotFoundError) Hint() string {
	return "check the spelling and the tag; without a network, give an OCI layout directory that holds the image"
}

// platformError says that an image exists, but not for this machine. It is
// sandbox.ErrImageNotFound.
type platformError struct {
	Ref  string
	Want string   // "linux/amd64"
	Have []string // what the image has instead
}

func (e *platformError) Error() string {
	if len(e.Have) == 0 {
		return fmt.Sprintf("image %q has no variant for %s, nor for anything else", e.Ref, e.Want)
	}
	return fmt.Sprintf("image %q has no variant for %s, only for %s", e.Ref, e.Want, strings.Join(e.Have, ", "))
}

// Unwrap makes errors.Is find sandbox.ErrImageNotFound.
func (e *platformError) Unwrap() error { return sandbox.ErrImageNotFound }

// unauthorizedError says that a registry refused to give an image out. Many
// registries answer this also for what does not exist.
type unauthorizedError struct {
	Ref      string
	Registry string
	Err      error
}

func (e *unauthorizedError) Error() string {
	return fmt.Sprintf("registry %s refuses access to %q: %v", e.Registry, e.Ref, e.Err)
}

func (e *unauthorizedError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *unauthorizedError) Hint() string {
	return fmt.Sprintf("check that the image exists; if it is private, log in with: docker login %s", e.Registry)
}

// unreachableError says that a registry could not be asked.
type unreachableError struct {
	Ref      string
	Registry string
	Err      error
}

func (e *unreachableError) Error() string {
	return fmt.Sprintf("asking registry %s for %q: %v", e.Registry, e.Ref, e.Err)
}

func (e *unreachableError) Unwrap() error { return e.Err }

// Retryable reports that another attempt later may succeed.
func (e *unreachableError) Retryable() bool { return true }

// Hint says what to do about it.
func (e *unreachableError) Hint() string {
	return "check the network and the proxy; to work without a network, give an OCI layout directory that holds the image"
}

// digestError says that content is not what its digest promises.
type digestError struct {
	What string // "manifest of \"debian:12\"", "layer", …
	Want string
	Got  string // a digest, or what else is wrong ("512 bytes of 1024")
}

func (e *digestError) Error() string {
	return fmt.Sprintf("verifying %s: want %s, got %s", e.What, e.Want, e.Got)
}

// Hint says what to do about it.
func (e *digestError) Hint() string {
	return "the source is damaged or something on the way changes content; fetch the image again from elsewhere"
}

// layerError says which entry of a layer cannot be unpacked. The layer is not
// used.
type layerError struct {
	Entry string // name in the tar, shortened
	Err   error
}

func (e *layerError) Error() string {
	return fmt.Sprintf("unpacking %q: %v", e.Entry, e.Err)
}

func (e *layerError) Unwrap() error { return e.Err }

// What can be wrong with a layer; found with errors.Is.
var (
	// errUnsafe marks an entry that would reach out of the layer.
	errUnsafe = errors.New("entry leads out of the layer")
	// ErrLimit marks a layer beyond the Limits.
	ErrLimit = errors.New("layer exceeds a limit")
	// ErrMalformed marks an entry or an archive that makes no sense.
	ErrMalformed = errors.New("malformed layer")
)

var errClosed = errors.New("image store is closed")
