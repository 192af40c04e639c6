package blob

import "errors"

// What can be wrong with a layer or an archive; found with errors.Is.
var (
	// ErrLimit marks a layer beyond its limits.
	ErrLimit = errors.New("layer exceeds a limit")
	// ErrMalformed marks an entry or an archive that makes no sense.
	ErrMalformed = errors.New("malformed layer")
)
