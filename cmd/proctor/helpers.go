//go:build !bundle

package main

import "io/fs"

// helpers are the programs that this one carries in itself: none, as they lie beside it.
func helpers() fs.FS { return nil }
