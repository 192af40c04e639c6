package source

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
)

type kind int

const (
	kindRegistry kind = iota
	kindLayout
	kindArchive
)

// The prefixes that tell local sources from registry references.
const (
	prefixLayout  = "oci:"
	prefixArchive = "docker-archive:"
)

// Reference is a parsed image reference.
type Reference struct {
	Raw string // as a user gave it

	kind kind
	name name.Reference // of kindRegistry
	path string         // of the others
	tag  string         // of the others; empty means the only image
}

// ParseReference reads a registry reference, "oci:DIR[:TAG]" or
// "docker-archive:FILE[:TAG]".
func ParseReference(raw string) (Reference, error) {
	if rest, ok := strings.CutPrefix(raw, prefixLayout); ok {
		return localReference(raw, rest, kindLayout)
	}
	if rest, ok := strings.CutPrefix(raw, prefixArchive); ok {
		return localReference(raw, rest, kindArchive)
	}
	n, err := name.ParseReference(raw)
	if err != nil {
		return Reference{}, fmt.Errorf("reading image reference %q: %w", raw, err)
	}
	return Reference{Raw: raw, kind: kindRegistry, name: n}, nil
}

// Local reports whether the reference names a layout or an archive on this machine.
func (r Reference) Local() bool { return r.kind != kindRegistry }

// Tagged reports whether the reference names a tag of a registry's repository.
func (r Reference) Tagged() bool {
	return !r.Local() && r.name.Identifier() != "" && !blob.IsDigest(r.name.Identifier())
}

func localReference(raw, rest string, k kind) (Reference, error) {
	if rest == "" {
		return Reference{}, fmt.Errorf("reading image reference %q: %w", raw, errors.New("the path is missing"))
	}
	path, tag := splitTag(rest)
	return Reference{Raw: raw, kind: k, path: path, tag: tag}, nil
}

// splitTag cuts PATH[:TAG]. Both may hold colons, so the longest prefix that
// exists is the path.
func splitTag(s string) (path, tag string) {
	for end := len(s); end > 0; end = strings.LastIndexByte(s[:end], ':') {
		if _, err := os.Stat(s[:end]); err == nil {
			return s[:end], strings.TrimPrefix(s[end:], ":")
		}
	}
	return s, ""
}

// Full is the reference in the form that equal references share.
func (r Reference) Full() string {
	if r.kind == kindRegistry {
		return r.name.Name()
	}
	return r.Raw
}

// sameName reports whether two names mean the same image once the defaults for
// registry, library and tag are filled in.
func sameName(a, b string) bool {
	if a == b {
		return true
	}
	ra, errA := name.ParseReference(a)
	rb, errB := name.ParseReference(b)
	return errA == nil && errB == nil && ra.Name() == rb.Name()
}

// tagged reports whether full, a name as sources note it, is what a user means
// by tag: the whole name or its tag alone.
func tagged(full, tag string) bool {
	if sameName(full, tag) {
		return true
	}
	t, err := name.NewTag(full)
	return err == nil && t.TagStr() == tag
}
