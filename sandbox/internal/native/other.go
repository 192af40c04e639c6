//go:build !linux

package native

import "errors"

// Init fails: there are no namespaces.
func Init() (Scores, error) { return Scores{}, errors.New("sandboxes need Linux") }
