package dataset

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"time"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/gitfetch"
	"github.com/proctor-run/proctor/internal/homedir"
	"github.com/proctor-run/proctor/internal/pep440"
	"github.com/proctor-run/proctor/internal/suggest"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// Registry lists datasets (Harbor job format, section 8, registry.json).
type Registry struct {
	Datasets []RegistryEntry
}

// RegistryEntry is one version of a dataset.
type RegistryEntry struct {
	Name        string
	Version     string
	Description string
	Tasks       []RegistryTask
	Metrics     []jobdir.MetricConfig
}

// RegistryTask says where a task of a dataset is: in a git repository, or in a
// directory on this machine. Its name is for people.
type RegistryTask struct {
	Name        *string
	GitURL      *string
	GitCommitID *string
	Path        string
}

// Bounds of what is read as a registry.
const (
	maxRegistrySize      = 256 << 20
	defaultRegistryLimit = 2 * time.Minute
)

// ParseRegistry reads a registry. The error for an invalid document is a
// *schema.Errors holding every problem.
func ParseRegistry(data []byte) (*Registry, error) {
	v, err := value.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("reading a dataset registry: %w", err)
	}
	list, _, err := schema.Validate(v, schema.List(schema.Model("DatasetSpec", registryEntryFields)))
	if err != nil {
		return nil, err
	}
	return &Registry{list}, nil
}

func registryEntryFields(f *schema.Fields) RegistryEntry {
	return RegistryEntry{
		Name:        schema.Required(f, "name", schema.Str),
		Version:     schema.Required(f, "version", schema.Str),
		Description: schema.Required(f, "description", schema.Str),
		Tasks:       schema.Required(f, "tasks", schema.List(schema.Model("RegistryTaskId", registryTaskFields))),
		Metrics:     schema.Default(f, "metrics", nil, schema.List(jobdir.DecodeMetric)),
	}
}

func registryTaskFields(f *schema.Fields) RegistryTask {
	return RegistryTask{
		Name:        schema.Optional(f, "name", schema.Str),
		GitURL:      schema.Optional(f, "git_url", schema.Str),
		GitCommitID: schema.Optional(f, "git_commit_id", schema.Str),
		Path:        schema.Required(f, "path", schema.Path),
	}
}

// Find returns a dataset, or a [MissingError]. Without a version it is the one
// called "head", else the highest by PEP 440, else the last by code points.
func (r *Registry) Find(name string, version *string) (*RegistryEntry, error) {
	var all []*RegistryEntry
	for i := range r.Datasets {
		if r.Datasets[i].Name == name {
			all = append(all, &r.Datasets[i])
		}
	}
	if len(all) == 0 {
		return nil, r.missing(name)
	}
	want := newest(all)
	if version != nil {
		want = *version
	}
	i := slices.IndexFunc(all, func(e *RegistryEntry) bool { return e.Version == want })
	if i < 0 {
		return nil, jobdir.RuleError(fmt.Sprintf("Version %s of dataset %s not found", want, name))
	}
	return all[i], nil
}

// MissingError is the error of a dataset that its registry does not have.
type MissingError struct {
	Err  error
	Near []string // the names that may have been meant, the nearest first
}

func (e *MissingError) Error() string { return e.Err.Error() }
func (e *MissingError) Unwrap() error { return e.Err }

func (r *Registry) missing(name string) error {
	names := make([]string, len(r.Datasets))
	for i, d := range r.Datasets {
		names[i] = d.Name
	}
	slices.Sort(names)
	return &MissingError{
		Err:  jobdir.RuleError(fmt.Sprintf("Dataset %s not found", name)),
		Near: suggest.Nearest(name, slices.Compact(names)),
	}
}

// headVersion is the version that is always the newest.
const headVersion = "head"

func newest(all []*RegistryEntry) string {
	var best *pep440.Version
	chosen, last := "", ""
	for _, e := range all {
		if e.Version == headVersion {
			return headVersion
		}
		last = max(last, e.Version)
		if v, ok := pep440.Parse(e.Version); ok && (best == nil || v.Compare(*best) > 0) {
			best, chosen = &v, e.Version
		}
	}
	if best == nil {
		return last
	}
	return chosen
}

// registryDataset finds a dataset's tasks in its registry.
func (f *fetcher) registryDataset(ctx context.Context, d jobdir.DatasetConfig) (FetchedDataset, error) {
	r, err := f.registry(ctx, d)
	if err != nil {
		return FetchedDataset{}, err
	}
	entry, err := r.Find(*d.Name, d.Version)
	if err != nil {
		return FetchedDataset{}, err
	}
	if err := checkRemoteMetrics(d, entry); err != nil {
		return FetchedDataset{}, err
	}
	found := FetchedDataset{Metrics: entry.Metrics}
	for _, t := range entry.Tasks {
		cfg := jobdir.TaskConfig{
			Path: &t.Path, GitURL: t.GitURL, GitCommitID: t.GitCommitID,
			Overwrite: d.Overwrite, DownloadDir: d.DownloadDir, Source: d.Name,
		}
		task := FetchedTask{Task: jobdir.Task{Config: cfg}}
		if cfg.Kind() == jobdir.LocalTask {
			task.Dir, task.Name = t.Path, TaskName(task.Task)
		} else {
			task.Name = path.Base(t.Path)
		}
		found.Tasks = append(found.Tasks, task)
	}
	return found, nil
}

// checkRemoteMetrics refuses to run a script here that a registry elsewhere
// names.
func checkRemoteMetrics(d jobdir.DatasetConfig, e *RegistryEntry) error {
	scripted := slices.ContainsFunc(e.Metrics, func(m jobdir.MetricConfig) bool { return m.Type == jobdir.MetricUVScript })
	if scripted && d.RegistryPath == nil {
		return errors.New("the registry asks for a metric script to be run on this machine; save the registry to a file, read the script, and give the file with --registry-path")
	}
	return nil
}

// ReadRegistry reads the registry at a path, or else at a URL.
func ReadRegistry(ctx context.Context, path, url *string, o FetchOptions) (*Registry, error) {
	f := &fetcher{o: o, registries: map[string]*Registry{}}
	return f.registry(ctx, jobdir.DatasetConfig{RegistryPath: path, RegistryURL: url})
}

// errHostedRegistry is the error of a dataset that only Harbor's own service
// knows.
var errHostedRegistry = errors.New("it is looked up in Harbor's hosted registry, which proctor does not talk to; give a registry file with --registry-path or its address with --registry-url, or the directory of the tasks with -p")

// registry reads the registry of a dataset, each once. A path wins over a URL.
func (f *fetcher) registry(ctx context.Context, d jobdir.DatasetConfig) (*Registry, error) {
	var key, name string
	var read func() ([]byte, error)
	switch {
	case d.RegistryPath != nil:
		key, name = *d.RegistryPath, *d.RegistryPath
		read = func() ([]byte, error) {
			return bounded.ReadFileContext(ctx, homedir.Expand(key, f.o.Home), maxRegistrySize)
		}
	case d.RegistryURL != nil:
		key, name = *d.RegistryURL, gitfetch.Anonymous(*d.RegistryURL)
		read = func() ([]byte, error) { return f.download(ctx, key) }
	default:
		return nil, errHostedRegistry
	}
	if r := f.registries[key]; r != nil {
		return r, nil
	}
	data, err := read()
	if err != nil {
		return nil, fmt.Errorf("reading the registry: %w", err)
	}
	r, err := ParseRegistry(data)
	if err != nil {
		return nil, fmt.Errorf("registry %q: %w", name, err)
	}
	f.registries[key] = r
	return r, nil
}

// download gets a registry by HTTP.
func (f *fetcher) download(ctx context.Context, from string) ([]byte, error) {
	u, err := url.Parse(from)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("--registry-url %q: want the http or https address of a registry file; a file is given with --registry-path", gitfetch.Anonymous(from))
	}
	limit := f.o.Limit
	if limit == 0 {
		limit = defaultRegistryLimit
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the registry: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	f.say("reading the registry %s", u.Redacted())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", u.Redacted(), resp.Status)
	}
	data, err := bounded.Read(resp.Body, maxRegistrySize)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", u.Redacted(), err)
	}
	return data, nil
}
