//go:build bundle

package main

import (
	"embed"
	"io/fs"
)

// bundle is made by .ci/release, for sandboxes.Options.Helpers.
//
//go:embed bundle
var bundle embed.FS

// helpers are the programs that this one carries in itself.
func helpers() fs.FS {
	all, err := fs.Sub(bundle, "bundle")
	if err != nil {
		panic(err) // the name is valid
	}
	return all
}
