//go:build !unix

package bounded

import "io/fs"

func hasSecondName(fs.FileInfo) bool { return false }
