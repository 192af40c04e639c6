package jobdir

import (
	"crypto/sha256"
	"fmt"
)

// FileDigest tells one content of a file from another.
type FileDigest struct {
	SHA256 string `json:"sha256"` // in hex
	Size   int64  `json:"size"`   // in bytes
}

// DigestOf is the digest of a content.
func DigestOf(data []byte) FileDigest {
	return FileDigest{SHA256: fmt.Sprintf("%x", sha256.Sum256(data)), Size: int64(len(data))}
}
