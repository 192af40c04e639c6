package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/jobdir"
)

// packages finds the task packages among the given ones in the cache.
func (f *fetcher) packages(tasks []*FetchedTask) error {
	var errs []error
	for _, t := range tasks {
		if t.Config.Kind() == jobdir.PackageTask {
			errs = append(errs, f.packageTask(t))
		}
	}
	return errors.Join(errs...)
}

// packageTask finds one package: the version that its reference names by its
// content, or the only one that is here.
func (f *fetcher) packageTask(t *FetchedTask) error {
	name := *t.Config.Name
	if !jobdir.IsPackageName(name) {
		return fmt.Errorf("task %q is not a package: its name must be org/name", name)
	}
	cache, err := f.cacheFor(t.Config.DownloadDir)
	if err != nil {
		return err
	}
	org, short, _ := strings.Cut(name, "/")
	ref := latestRef
	if t.Config.Ref != nil {
		ref = *t.Config.Ref
	}
	digest := ref
	if !jobdir.IsDigest(ref) {
		if digest, err = f.onlyVersion(filepath.Join(cache.dir, "packages", org, short), name, ref); err != nil {
			return err
		}
	}
	dir := cache.path(harbor.PackageCachePath(org, short, digest))
	if !isFilled(dir) {
		return missingPackage(name, ref, dir)
	}
	if err := checkLinks(dir); err != nil {
		return fmt.Errorf("checking package %q: %w", name, err)
	}
	sum, _, err := harbor.PackageHash(dir)
	if err != nil {
		return fmt.Errorf("checking package %q: %w", name, err)
	}
	if sum != digest {
		return fmt.Errorf("package %q: the content of %q has the digest %s; it was changed, remove it and fetch it again", name, dir, sum)
	}
	t.Dir, t.Digest, t.Name = dir, digest, path.Base(name)
	return nil
}

// checkLinks looks for links of a package that lead out of it: to what stands on this
// machine, and is no part of what others made.
func checkLinks(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink == 0 {
			return err
		}
		if _, err := root.Stat(filepath.FromSlash(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%q: %w", filepath.Join(dir, filepath.FromSlash(name)), bounded.ErrLeadsOut)
		}
		return nil
	})
}

// latestRef is the reference of a package that is given none.
const latestRef = "latest"

func missingPackage(name, ref, dir string) error {
	return fmt.Errorf("package %q: version %q is not on this machine, and proctor has no hub to fetch it from; it would be in %q: fetch it there with 'harbor download --cache', or give the task's directory with -p", name, ref, dir)
}

// onlyVersion resolves a tag or revision, which only a hub could tell, where
// there is nothing to choose.
func (f *fetcher) onlyVersion(dir, name, ref string) (string, error) {
	var digests []string
	entries, _ := os.ReadDir(dir) // none when it is not there
	for _, e := range entries {
		if d := jobdir.DigestPrefix + e.Name(); e.IsDir() && jobdir.IsDigest(d) && isFilled(filepath.Join(dir, e.Name())) {
			digests = append(digests, d)
		}
	}
	slices.Sort(digests)
	switch len(digests) {
	case 0:
		return "", missingPackage(name, ref, dir)
	case 1:
		f.warnOnce(fmt.Sprintf("package %q: which version %q is cannot be asked for; taking the only one on this machine, %s", name, ref, digests[0]))
		return digests[0], nil
	}
	return "", fmt.Errorf("package %q: which version %q is cannot be asked for, and %d are on this machine; name one: %s", name, ref, len(digests), strings.Join(digests, ", "))
}
