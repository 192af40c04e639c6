package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/proctor-run/proctor/sandbox/buildcontext"
	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// RefPrefix begins the names of all built images in a store.
const RefPrefix = "proctor.invalid/"

// Names of built images in the store. No registry can have that host name
// (RFC 2606, section 2). The numbers change with what building means.
const (
	stepPrefix  = "proctor.invalid/step/2:"
	finalPrefix = "proctor.invalid/build/2:"
)

// finalKey names the image of a whole context. Of one whose steps may have used a cache
// it is the context's alone: dir is its directory then, and else empty.
func finalKey(files *buildcontext.Context, dir, arch string, bases map[string]image.Image) (string, error) {
	content, err := files.Hash("linux/" + arch)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s\n", content)
	for _, ref := range slices.Sorted(maps.Keys(bases)) {
		_, _ = fmt.Fprintf(h, "%q %s\n", ref, bases[ref].ID)
	}
	if dir != "" {
		_, _ = fmt.Fprintf(h, "in %q\n", dir)
	}
	return finalPrefix + hex.EncodeToString(h.Sum(nil)), nil
}

// stepKey names the image that a step makes of its base. What the step is made
// of is given as values that JSON tells apart.
func stepKey(arch string, base image.Image, parts ...any) (string, error) {
	data, err := json.Marshal(append([]any{arch, base.ID}, parts...))
	if err != nil {
		return "", fmt.Errorf("naming the image of a step: %w", err)
	}
	sum := sha256.Sum256(data)
	return stepPrefix + hex.EncodeToString(sum[:]), nil
}
