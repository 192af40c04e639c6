package image

import (
	"errors"
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
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

// notFound returns the error of a source, as a *NotFoundError if the source has not
// got the image. Looked names the places that were asked before.
func notFound(err error, looked ...string) error {
	if missing, ok := errors.AsType[*source.MissingError](err); ok {
		return &NotFoundError{Ref: missing.Ref, Looked: append(looked, missing.Looked...)}
	}
	return err
}

// What can be wrong with a layer; found with errors.Is.
var (
	// ErrLimit marks a layer beyond the Limits.
	ErrLimit = blob.ErrLimit
	// ErrMalformed marks an entry or an archive that makes no sense.
	ErrMalformed = blob.ErrMalformed
)

var errClosed = errors.New("image store is closed")
