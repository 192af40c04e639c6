package harbor

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/internal/dump"
	"github.com/proctor-run/proctor/value"
)

// EffectiveArtifacts joins the artifacts of a task, a job and a step, in this
// order. Unless one of them is the conventional directory, that comes first
// (section 6.6).
func EffectiveArtifacts(lists ...[]Artifact) []Artifact {
	all := slices.Concat(lists...)
	if slices.ContainsFunc(all, Artifact.IsConvention) {
		return all
	}
	return slices.Insert(all, 0, Artifact{Source: ArtifactsDir, Destination: new(ArtifactsDir), Exclude: []string{}})
}

// IsConvention reports whether the artifact is the directory into which agents
// put what they want to keep.
func (a Artifact) IsConvention() bool { return strings.TrimRight(a.Source, "/") == ArtifactsDir }

// RelPath returns where the artifact goes below the artifacts directory of a
// trial, with slashes; "." is the directory itself. The path may lead out of
// it, see [Artifact.Escapes].
func (a Artifact) RelPath() string {
	destination := ""
	if a.Destination != nil {
		destination = *a.Destination
	}
	if a.IsConvention() && (destination == "" || destination == ArtifactsDir || destination == ".") {
		return "."
	}
	parts := pathParts(destination)
	if destination == "" {
		parts = pathParts(a.Source)
		parts = parts[max(0, len(parts)-1):]
	}
	if len(parts) == 0 {
		return "."
	}
	return strings.Join(parts, "/")
}

// pathParts splits a POSIX path, without its root and without "." and empty
// parts.
func pathParts(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(part string) bool { return part == "" || part == "." })
}

// Escapes reports whether RelPath leads out of the artifacts directory. Harbor
// writes there nevertheless; a collector must not.
func (a Artifact) Escapes() bool { return !filepath.IsLocal(filepath.FromSlash(a.RelPath())) }

// ManifestDestination is how manifest.json names the place of the artifact.
func (a Artifact) ManifestDestination() string {
	rel := a.RelPath()
	if rel == "." {
		return "artifacts"
	}
	return "artifacts/" + rel
}

// UploadTarget is where the artifact goes in the environment of a separate
// verifier.
func (a Artifact) UploadTarget() string {
	if a.IsConvention() {
		return ArtifactsDir
	}
	return a.Source
}

// What a manifest says of an artifact.
const (
	ManifestFile      = "file"
	ManifestDirectory = "directory"

	ManifestOK     = "ok"
	ManifestFailed = "failed"
	ManifestEmpty  = "empty"
)

// ManifestEntry is one row of artifacts/manifest.json (section 6.6).
type ManifestEntry struct {
	Source, Destination string
	Type                string // ManifestFile or ManifestDirectory
	Status              string // ManifestOK, ManifestFailed or ManifestEmpty
}

// AppendManifest appends the text of artifacts/manifest.json.
func AppendManifest(dst []byte, entries []ManifestEntry) []byte {
	list := dump.List(entries, func(e ManifestEntry) value.Value {
		var o dump.Object
		o.Str("source", e.Source)
		o.Str("destination", e.Destination)
		o.Str("type", e.Type)
		o.Str("status", e.Status)
		return o.Value()
	})
	return value.AppendDumps(dst, list, value.DumpsOptions{Indent: 2})
}
