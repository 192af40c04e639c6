package trial

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/sandbox"
)

// collectArtifacts saves what the task and the job want kept, and says in a
// manifest what became of each (Harbor task format, section 6.6). It never
// fails the trial.
func (a *attempt) collectArtifacts(ctx context.Context, step *harbor.Step) {
	a.collected = true
	var entries []harbor.ManifestEntry
	for _, artifact := range a.artifacts(step) {
		entry := harbor.ManifestEntry{Source: artifact.Source, Destination: artifact.ManifestDestination()}
		var err error
		if entry.Type, entry.Status, err = a.collect(ctx, artifact); err != nil {
			entry.Status = harbor.ManifestFailed
			a.log.printf("Failed to collect artifact %s: %v", artifact.Source, err)
		}
		entries = append(entries, entry)
	}
	if err := atomicfile.WriteIn(a.hostDir("artifacts"), "manifest.json", harbor.AppendManifest(nil, entries), 0o644); err != nil {
		a.warn("writing the manifest of artifacts: %v", err)
	}
}

// artifacts are those of the task, of the job and of a step, which may be nil.
func (a *attempt) artifacts(step *harbor.Step) []harbor.Artifact {
	lists := [][]harbor.Artifact{a.task.Config.Artifacts, a.cfg.Artifacts}
	if step != nil {
		lists = append(lists, step.Artifacts)
	}
	return harbor.EffectiveArtifacts(lists...)
}

// collect saves one artifact. What the sandbox writes to a mounted directory
// is on the host already.
func (a *attempt) collect(ctx context.Context, artifact harbor.Artifact) (kind, status string, err error) {
	mounted := a.r.Backend.Capabilities().Mounted
	if artifact.IsConvention() && mounted && len(artifact.Exclude) == 0 {
		return harbor.ManifestDirectory, a.conventionStatus(artifact), nil
	}
	kind = guessKind(artifact.Source)
	if artifact.Escapes() {
		return kind, "", fmt.Errorf("destination %q leads out of the artifacts directory", artifact.RelPath())
	}
	isDir, err := a.isDir(ctx, artifact.Source)
	if err != nil {
		return kind, "", err
	}
	root, err := os.OpenRoot(a.hostDir("artifacts"))
	if err != nil {
		return kind, "", err
	}
	defer root.Close()
	target := filepath.FromSlash(artifact.RelPath())
	if !isDir {
		return harbor.ManifestFile, harbor.ManifestOK, a.downloadFile(ctx, artifact.Source, root, target)
	}
	return harbor.ManifestDirectory, harbor.ManifestOK, a.downloadDir(ctx, artifact, root, target)
}

func (a *attempt) conventionStatus(artifact harbor.Artifact) string {
	dir, err := os.OpenRoot(a.hostDir("artifacts"))
	if err != nil {
		return harbor.ManifestEmpty
	}
	defer dir.Close()
	entries, err := fs.ReadDir(dir.FS(), path.Clean(artifact.RelPath()))
	if err != nil || len(entries) == 0 {
		return harbor.ManifestEmpty
	}
	return harbor.ManifestOK
}

// guessKind is the kind of what cannot be looked at: a name with a suffix is a
// file.
func guessKind(source string) string {
	if path.Ext(strings.TrimRight(source, "/")) == "" {
		return harbor.ManifestDirectory
	}
	return harbor.ManifestFile
}

func (a *attempt) isDir(ctx context.Context, source string) (bool, error) {
	sb := a.sandbox()
	if sb == nil {
		return false, sandbox.ErrDestroyed
	}
	status, err := sb.Exec(ctx, sandbox.Command{Argv: []string{"test", "-d", source}, User: "root"})
	if err != nil {
		return false, fmt.Errorf("looking at %q: %w", source, err)
	}
	return status.Code == 0, nil
}

func (a *attempt) downloadFile(ctx context.Context, source string, root *os.Root, target string) error {
	if err := root.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return sandbox.DownloadFile(ctx, a.sandbox(), source, root, target, sandbox.DefaultDownloadLimits)
}

func (a *attempt) downloadDir(ctx context.Context, artifact harbor.Artifact, root *os.Root, target string) error {
	if err := root.MkdirAll(target, 0o755); err != nil {
		return err
	}
	dir, err := root.OpenRoot(target)
	if err != nil {
		return err
	}
	defer dir.Close()
	sb := a.sandbox()
	if len(artifact.Exclude) > 0 {
		sb = excluding{sb, artifact.Exclude}
	}
	return sandbox.DownloadDir(ctx, sb, artifact.Source, dir, sandbox.DefaultDownloadLimits)
}

// excluding leaves out of downloads what matches the patterns of tar's
// --exclude: they may match at any depth, and what is below a match goes with
// it.
type excluding struct {
	sandbox.Sandbox
	patterns []string
}

// Download filters the stream of the sandbox.
func (e excluding) Download(ctx context.Context, source string, w io.Writer) error {
	pr, pw := io.Pipe()
	filtered := make(chan error, 1)
	go func() {
		err := e.filter(tar.NewReader(pr), tar.NewWriter(w))
		if err == nil {
			_, err = io.Copy(io.Discard, pr)
		}
		pr.CloseWithError(err)
		filtered <- err
	}()
	err := e.Sandbox.Download(ctx, source, pw)
	pw.CloseWithError(err)
	if filterErr := <-filtered; err == nil {
		err = filterErr
	}
	return err
}

func (e excluding) filter(r *tar.Reader, w *tar.Writer) error {
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return w.Close()
		}
		if err != nil {
			return err
		}
		if e.excluded(h.Name) {
			continue
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(w, r); err != nil {
			return err
		}
	}
}

func (e excluding) excluded(name string) bool {
	parts := strings.Split(path.Clean(name), "/")
	for _, pattern := range e.patterns {
		for from := range parts {
			for to := from + 1; to <= len(parts); to++ {
				if harbor.Match(pattern, strings.Join(parts[from:to], "/")) {
					return true
				}
			}
		}
	}
	return false
}
