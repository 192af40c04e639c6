// Package homedir expands paths below a home directory.
package homedir

import (
	"path/filepath"
	"strings"
)

// Expand returns a path that begins with ~ or ~/ as one below home. Others, and
// all when home is empty, stay as they are. The homes of other users ("~name")
// are not known here.
func Expand(path, home string) string {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok || home == "" || rest != "" && rest[0] != '/' {
		return path
	}
	return filepath.Join(home, rest)
}
