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

	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/fnmatch"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
)

// artifacts are the files that a trial keeps of what the agent made.
type artifacts struct {
	dir     string // on the host
	cfg     *jobdir.TrialConfig
	task    *harbor.Task
	mounted bool
}

// collectAll saves what the task and the job want kept from the agent's sandbox,
// which may be nil, and lists the status of each in a manifest (Harbor task
// format, section 6.6). failed has why artifacts could not be saved; the error is
// that of the manifest.
func (a *artifacts) collectAll(ctx context.Context, sb sandbox.Sandbox, step *harbor.Step) (failed []error, err error) {
	var entries []harbor.ManifestEntry
	for _, artifact := range a.wanted(step) {
		entry := harbor.ManifestEntry{Source: artifact.Source, Destination: artifact.ManifestDestination()}
		var err error
		if entry.Type, entry.Status, err = a.collect(ctx, sb, artifact); err != nil {
			entry.Status = harbor.ManifestFailed
			failed = append(failed, fmt.Errorf("%s: %w", artifact.Source, err))
		}
		entries = append(entries, entry)
	}
	return failed, atomicfile.WriteIn(a.dir, "manifest.json", harbor.AppendManifest(nil, entries), 0o644)
}

// collectArtifacts saves artifacts. What cannot be saved does not fail the trial.
func (a *attempt) collectArtifacts(ctx context.Context, step *harbor.Step) {
	a.collected = true
	failed, err := a.artifacts.collectAll(ctx, a.sandbox(), step)
	for _, f := range failed {
		a.log.printf("Failed to collect artifact %v", f)
	}
	if err != nil {
		a.warn("writing the manifest of artifacts: %v", err)
	}
}

// wanted are those of the task, of the job and of a step, which may be nil.
func (a *artifacts) wanted(step *harbor.Step) []harbor.Artifact {
	lists := [][]harbor.Artifact{a.task.Config.Artifacts, a.cfg.Artifacts}
	if step != nil {
		lists = append(lists, step.Artifacts)
	}
	return harbor.EffectiveArtifacts(lists...)
}

// collect saves one artifact. What the sandbox writes to a mounted directory
// is on the host already.
func (a *artifacts) collect(ctx context.Context, sb sandbox.Sandbox, artifact harbor.Artifact) (kind, status string, err error) {
	if artifact.IsConvention() && a.mounted && len(artifact.Exclude) == 0 {
		return harbor.ManifestDirectory, a.conventionStatus(artifact), nil
	}
	kind = guessKind(artifact.Source)
	if artifact.Escapes() {
		return kind, "", fmt.Errorf("destination %q leads out of the artifacts directory", artifact.RelPath())
	}
	isDir, err := isDir(ctx, sb, artifact.Source)
	if err != nil {
		return kind, "", err
	}
	root, err := os.OpenRoot(a.dir)
	if err != nil {
		return kind, "", err
	}
	defer func() { _ = root.Close() }()
	target := filepath.FromSlash(artifact.RelPath())
	if !isDir {
		return harbor.ManifestFile, harbor.ManifestOK, downloadFile(ctx, sb, artifact.Source, root, target)
	}
	return harbor.ManifestDirectory, harbor.ManifestOK, downloadDir(ctx, sb, artifact, root, target)
}

func (a *artifacts) conventionStatus(artifact harbor.Artifact) string {
	dir, err := os.OpenRoot(a.dir)
	if err != nil {
		return harbor.ManifestEmpty
	}
	defer func() { _ = dir.Close() }()
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

func isDir(ctx context.Context, sb sandbox.Sandbox, source string) (bool, error) {
	if sb == nil {
		return false, sandbox.ErrDestroyed
	}
	status, err := sb.Exec(ctx, sandbox.Command{Argv: []string{"test", "-d", source}, User: "root"})
	if err != nil {
		return false, fmt.Errorf("looking at %q: %w", source, err)
	}
	return status.Code == 0, nil
}

func downloadFile(ctx context.Context, sb sandbox.Sandbox, source string, root *os.Root, target string) error {
	if err := root.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return sandbox.DownloadFile(ctx, sb, source, root, target, sandbox.DefaultDownloadLimits)
}

func downloadDir(ctx context.Context, sb sandbox.Sandbox, artifact harbor.Artifact, root *os.Root, target string) error {
	if err := root.MkdirAll(target, 0o755); err != nil {
		return err
	}
	dir, err := root.OpenRoot(target)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
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
			err = w.Close()
			if err != nil {
				return fmt.Errorf("ending the archive: %w", err)
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the archive: %w", err)
		}
		if e.excluded(h.Name) {
			continue
		}
		if err := w.WriteHeader(h); err != nil {
			return fmt.Errorf("passing on %q: %w", h.Name, err)
		}
		if _, err := io.Copy(w, r); err != nil {
			return fmt.Errorf("passing on %q: %w", h.Name, err)
		}
	}
}

func (e excluding) excluded(name string) bool {
	parts := strings.Split(path.Clean(name), "/")
	for _, pattern := range e.patterns {
		for from := range parts {
			for to := from + 1; to <= len(parts); to++ {
				if fnmatch.Match(pattern, strings.Join(parts[from:to], "/")) {
					return true
				}
			}
		}
	}
	return false
}

// upload gives a separate verifier what was collected, each where it
// came from (section 6.6).
func (a *artifacts) upload(ctx context.Context, sb sandbox.Sandbox, step *harbor.Step) error {
	root, err := os.OpenRoot(a.dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, artifact := range a.wanted(step) {
		if artifact.Escapes() {
			continue
		}
		rel := filepath.FromSlash(artifact.RelPath())
		info, err := root.Stat(rel)
		if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			continue // what could not be collected is not there
		}
		host := filepath.Join(root.Name(), rel)
		if !info.IsDir() {
			if err := sandbox.UploadFile(ctx, sb, host, artifact.UploadTarget()); err != nil {
				return fmt.Errorf("uploading artifact %q: %w", artifact.Source, err)
			}
			continue
		}
		if err := environment.EmptyDirs(ctx, sb, artifact.UploadTarget()); err != nil {
			return err
		}
		if err := sandbox.UploadDir(ctx, sb, host, artifact.UploadTarget()); err != nil {
			return fmt.Errorf("uploading artifact %q: %w", artifact.Source, err)
		}
	}
	return nil
}
