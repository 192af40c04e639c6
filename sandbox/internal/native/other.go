//go:build !linux

package native

import "errors"

// Spare spares nobody.
func Spare() (Scores, error) { return Scores{}, nil }

// Init fails: there are no namespaces.
func Init() (Scores, error) { return Scores{}, errors.New("sandboxes need Linux") }
