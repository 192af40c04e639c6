//go:build !unix

package build

import "io/fs"

func ownerOf(fs.FileInfo) owner { return owner{} }
