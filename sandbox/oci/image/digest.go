package image

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func isDigest(s string) bool {
	_, err := v1.NewHash(s)
	return err == nil
}

// fileKey turns a digest into a file name.
func fileKey(digest string) string { return strings.ReplaceAll(digest, ":", "-") }

// verifier is a reader that hashes what passes and knows at the end whether it
// was what a digest promised.
type verifier struct {
	r    io.Reader
	hash hash.Hash
	want v1.Hash
	size int64 // promised, -1 when unknown
	n    int64
}

func newVerifier(r io.Reader, want v1.Hash, size int64) (*verifier, error) {
	h, err := v1.Hasher(want.Algorithm)
	if err != nil {
		return nil, fmt.Errorf("verifying %s: %w", want, err)
	}
	return &verifier{r: r, hash: h, want: want, size: size}, nil
}

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.r.Read(p)
	v.hash.Write(p[:n])
	v.n += int64(n)
	if v.size >= 0 && v.n > v.size {
		return n, &digestError{What: "size of " + v.want.String(), Want: bytesText(v.size), Got: "more"}
	}
	return n, err
}

// check is called at the end of the stream.
func (v *verifier) check(what string) error {
	if v.size >= 0 && v.n != v.size {
		return &digestError{What: what, Want: bytesText(v.size), Got: bytesText(v.n)}
	}
	got := v1.Hash{Algorithm: v.want.Algorithm, Hex: hex.EncodeToString(v.hash.Sum(nil))}
	if got != v.want {
		return &digestError{What: what, Want: v.want.String(), Got: got.String()}
	}
	return nil
}

func verifyBytes(what string, want v1.Hash, data []byte) error {
	v, err := newVerifier(nil, want, -1)
	if err != nil {
		return err
	}
	v.hash.Write(data)
	return v.check(what)
}

func bytesText(n int64) string { return fmt.Sprintf("%d bytes", n) }
