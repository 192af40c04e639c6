package blob

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// DigestOf is the digest of data, "sha256:…".
func DigestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// IsDigest reports whether s has the form of a digest.
func IsDigest(s string) bool {
	_, err := v1.NewHash(s)
	return err == nil
}

// Verifier is a reader that hashes what passes and knows at the end whether it
// was what a digest promised.
type Verifier struct {
	r    io.Reader
	hash hash.Hash
	want v1.Hash
	size int64 // promised, -1 when unknown
	n    int64
}

// NewVerifier checks what r returns against a digest and, unless it is negative,
// a size in bytes. r may be nil if From sets it.
func NewVerifier(r io.Reader, want v1.Hash, size int64) (*Verifier, error) {
	h, err := v1.Hasher(want.Algorithm)
	if err != nil {
		return nil, fmt.Errorf("verifying %s: %w", want, err)
	}
	return &Verifier{r: r, hash: h, want: want, size: size}, nil
}

// From has the stream go on with another reader.
func (v *Verifier) From(r io.Reader) { v.r = r }

// Read reads and hashes. What it returns is verified only when Check returned nil
// at the end of the stream.
func (v *Verifier) Read(p []byte) (int, error) {
	n, err := v.r.Read(p)
	v.hash.Write(p[:n])
	v.n += int64(n)
	if v.size >= 0 && v.n > v.size {
		return n, &DigestError{What: "size of " + v.want.String(), Want: bytesText(v.size), Got: "more"}
	}
	return n, err
}

// Check is called at the end of the stream, and returns a *DigestError if it was not
// what the digest promised. What names the stream in that.
func (v *Verifier) Check(what string) error {
	if v.size >= 0 && v.n != v.size {
		return &DigestError{What: what, Want: bytesText(v.size), Got: bytesText(v.n)}
	}
	got := v1.Hash{Algorithm: v.want.Algorithm, Hex: hex.EncodeToString(v.hash.Sum(nil))}
	if got != v.want {
		return &DigestError{What: what, Want: v.want.String(), Got: got.String()}
	}
	return nil
}

// VerifyBytes returns a *DigestError if data is not what want promises. What names
// data in that.
func VerifyBytes(what string, want v1.Hash, data []byte) error {
	v, err := NewVerifier(nil, want, -1)
	if err != nil {
		return err
	}
	v.hash.Write(data)
	return v.Check(what)
}

func bytesText(n int64) string { return fmt.Sprintf("%d bytes", n) }

// DigestError says that content is not what its digest promises.
type DigestError struct {
	What string // "manifest of \"debian:12\"", "layer", …
	Want string
	Got  string // a digest, or what else is wrong ("512 bytes of 1024")
}

func (e *DigestError) Error() string {
	return fmt.Sprintf("verifying %s: want %s, got %s", e.What, e.Want, e.Got)
}

// Hint says what to do about it.
func (e *DigestError) Hint() string {
	return "the source is damaged or something on the way changes content; fetch the image again from elsewhere"
}
