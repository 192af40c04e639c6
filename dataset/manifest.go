package dataset

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/toml"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// Manifest is the list of a dataset package's content (Harbor job format,
// section 8, dataset.toml).
type Manifest struct {
	Name  string // "org/name"
	Tasks []ManifestTask
	Files []ManifestFile
}

// ManifestTask is a task package.
type ManifestTask struct {
	Name   string // "org/name"
	Digest string // "sha256:" and 64 hex digits
}

// ManifestFile is a file beside the tasks. Its digest may be empty.
type ManifestFile struct {
	Path   string
	Digest string
}

// manifestName is the name of manifests.
const manifestName = "dataset.toml"

// ParseManifest reads a manifest. The error is a *toml.Error for text that is
// no TOML, and a *schema.Errors holding every problem for an invalid document.
func ParseManifest(text string) (*Manifest, error) {
	doc, err := toml.Decode(text)
	if err != nil {
		return nil, err
	}
	m, _, err := schema.Validate(value.Value(doc), schema.Model("DatasetManifest", func(f *schema.Fields) Manifest {
		_ = schema.Default(f, "schema_version", "1.0", schema.Str)
		return Manifest{
			Name: schema.Required(f, "dataset", schema.Model("DatasetInfo", func(f *schema.Fields) string {
				return schema.Required(f, "name", decodePackageName)
			})),
			Tasks: schema.Default(f, "tasks", nil, schema.List(schema.Model("DatasetTaskRef", func(f *schema.Fields) ManifestTask {
				return ManifestTask{Name: schema.Required(f, "name", decodePackageName), Digest: schema.Required(f, "digest", jobdir.DecodeDigest)}
			}))),
			Files: schema.Default(f, "files", nil, schema.List(schema.Model("DatasetFileRef", func(f *schema.Fields) ManifestFile {
				return ManifestFile{Path: schema.Required(f, "path", decodeFileName), Digest: schema.Default(f, "digest", "", schema.Str)}
			}))),
		}
	}))
	return &m, err
}

func decodePackageName(c *schema.Cursor, v value.Value) (string, bool) {
	return schema.After(schema.Str, func(s string) (string, error) {
		if !jobdir.IsPackageName(s) {
			return s, jobdir.RuleError("Package name must be in 'org/name' format with alphanumeric characters, hyphens, underscores, and dots. Cannot start with a dot or contain '..'. Got: " + s)
		}
		return s, nil
	})(c, v)
}

var errFileName = errors.New("path must be the name of a file, without separators")

func decodeFileName(c *schema.Cursor, v value.Value) (string, bool) {
	return schema.After(schema.Str, func(s string) (string, error) {
		if s == "" || s == "." || s == ".." || strings.ContainsAny(s, `/\`) {
			return s, errFileName
		}
		return s, nil
	})(c, v)
}

// Hash identifies a manifest by what it lists, as hex digits: the hash of the
// tasks' sorted digests, and of the files if there are any.
func (m *Manifest) Hash() string {
	tasks := make([]string, len(m.Tasks))
	for i, t := range m.Tasks {
		tasks[i] = strings.TrimPrefix(t.Digest, jobdir.DigestPrefix)
	}
	slices.Sort(tasks)
	text := strings.Join(tasks, ",")
	if len(m.Files) > 0 {
		files := make([]string, len(m.Files))
		for i, f := range m.Files {
			files[i] = f.Path + ":" + strings.TrimPrefix(f.Digest, jobdir.DigestPrefix)
		}
		slices.Sort(files)
		text += ";" + strings.Join(files, ",")
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
}

// packageDataset finds a dataset package in the cache: the version whose hash
// its reference is, or the only one that is here. Only where its manifest is
// here too is it known what the dataset consists of.
func (f *fetcher) packageDataset(d jobdir.DatasetConfig) (FetchedDataset, error) {
	if !jobdir.IsPackageName(*d.Name) {
		return FetchedDataset{}, errors.New("it is not a package: its name must be org/name")
	}
	m, err := f.findManifest(d)
	if err != nil {
		return FetchedDataset{}, err
	}
	var found FetchedDataset
	for _, t := range m.Tasks {
		cfg := jobdir.TaskConfig{Name: &t.Name, Ref: &t.Digest, Overwrite: d.Overwrite, DownloadDir: d.DownloadDir, Source: d.Name}
		found.Tasks = append(found.Tasks, FetchedTask{Task: jobdir.Task{Config: cfg}})
	}
	if slices.ContainsFunc(m.Files, func(x ManifestFile) bool { return x.Path == "metric.py" }) {
		f.warnOnce(fmt.Sprintf("dataset %q brings a metric script, which proctor does not run unasked; to use it, name it in the configuration as a uv-script metric", *d.Name))
	}
	return found, nil
}

func (f *fetcher) findManifest(d jobdir.DatasetConfig) (*Manifest, error) {
	cache, err := CacheDir(f.o.Home)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "datasets", filepath.FromSlash(*d.Name))
	ref := latestRef
	if d.Ref != nil {
		ref = *d.Ref
	}
	var versions []string
	if jobdir.IsDigest(ref) {
		versions = []string{strings.TrimPrefix(ref, jobdir.DigestPrefix)}
	} else if entries, err := os.ReadDir(dir); err == nil {
		for _, e := range entries {
			if jobdir.IsDigest(jobdir.DigestPrefix + e.Name()) {
				versions = append(versions, e.Name())
			}
		}
	}
	var found []string
	for _, v := range versions {
		if path := filepath.Join(dir, v, manifestName); isRegularFile(path) {
			found = append(found, path)
		}
	}
	switch len(found) {
	case 1:
		return f.readManifest(found[0], *d.Name, ref)
	case 0:
		return nil, fmt.Errorf("which tasks version %q has is known to Harbor's hub only, which proctor does not talk to, and there is no %s in %q; fetch the dataset with 'harbor download' and give its directory with -p", ref, manifestName, filepath.Join(dir, "<hash>"))
	}
	return nil, fmt.Errorf("which version %q is cannot be asked for, and %d are on this machine; name one as sha256:<hash>: %s", ref, len(found), strings.Join(versions, ", "))
}

func isRegularFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// readManifest reads a manifest in the cache and checks that it is what its
// directory is named after.
func (f *fetcher) readManifest(path, name, ref string) (*Manifest, error) {
	data, err := bounded.ReadIn(filepath.Dir(path), filepath.Base(path), maxRegistrySize)
	if err != nil {
		return nil, err
	}
	m, err := ParseManifest(string(data))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", path, err)
	}
	if want := filepath.Base(filepath.Dir(path)); m.Hash() != want {
		return nil, fmt.Errorf("%q: its content has the hash %s; it was changed, remove its directory and fetch it again", path, m.Hash())
	}
	if m.Name != name {
		return nil, fmt.Errorf("%q is the manifest of dataset %q", path, m.Name)
	}
	if !jobdir.IsDigest(ref) {
		f.warnOnce(fmt.Sprintf("dataset %q: which version %q is cannot be asked for; taking the only one on this machine, %s", name, ref, m.Hash()))
	}
	return m, nil
}
