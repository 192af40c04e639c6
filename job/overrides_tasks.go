package job

import (
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/schema"
)

// Messages of wrong combinations, in the format's words.
var (
	errBothTaskAndDataset = jobdir.RuleError("Cannot specify both task and dataset parameters")
	errGitWithoutPath     = jobdir.RuleError("Task configuration with --task-git-url requires --path")
	errFilterWithout      = jobdir.RuleError("Cannot specify --registry-url, --registry-path, --include-task-name, or --exclude-task-name without also specifying --dataset, --task, or --path.")
)

// applyTasks chooses what to run. A task wins over a dataset, and either
// replaces what the configuration names.
func (o Overrides) applyTasks(c *jobdir.Config, isTask func(string) bool) error {
	git := o.GitURL != nil || o.GitCommit != nil
	switch {
	case git && o.Dataset != nil:
		return errBothTaskAndDataset
	case git && o.Path == nil:
		return errGitWithoutPath
	case o.Path != nil:
		return o.applyPath(c, isTask)
	case o.Task != nil:
		return o.applyPackageTask(c)
	case o.Dataset != nil:
		c.Tasks = nil
		c.Datasets = []jobdir.DatasetConfig{o.filtered(namedDataset(*o.Dataset))}
	case o.RegistryURL != nil || o.RegistryPath != nil || len(o.IncludeTasks) > 0 || len(o.ExcludeTasks) > 0:
		return errFilterWithout
	}
	return nil
}

// applyPath makes a path one task when it is a valid task directory, and a
// dataset otherwise. Settings for a git repository only go with a task.
func (o Overrides) applyPath(c *jobdir.Config, isTask func(string) bool) error {
	path := schema.CleanPath(*o.Path)
	c.Tasks, c.Datasets = nil, nil
	if isTask(path) {
		c.Tasks = []jobdir.TaskConfig{{Path: &path, GitURL: o.GitURL, GitCommitID: o.GitCommit}}
		if o.GitCommit != nil && o.GitURL == nil {
			return jobdir.ErrCommitWithoutURL
		}
		return nil
	}
	c.Datasets = []jobdir.DatasetConfig{o.filtered(jobdir.DatasetConfig{Path: &path})}
	return nil
}

func (o Overrides) applyPackageTask(c *jobdir.Config) error {
	name, ref := *o.Task, "latest"
	if i := strings.LastIndexByte(name, '@'); i >= 0 {
		name, ref = name[:i], name[i+1:]
	}
	if !jobdir.IsPackageName(name) {
		return fmt.Errorf("1 validation error for PackageReference\nname\n  Value error, Package name must be in 'org/name' format with alphanumeric characters, hyphens, underscores, and dots. Cannot start with a dot or contain '..'. Got: %s [type=value_error, input_value='%s', input_type=str]", name, name)
	}
	c.Tasks, c.Datasets = []jobdir.TaskConfig{{Name: &name, Ref: &ref}}, nil
	return nil
}

// namedDataset splits NAME[@VERSION]: a name with a slash is a package whose
// reference defaults to latest, any other is an entry of a registry.
func namedDataset(text string) jobdir.DatasetConfig {
	name, version, given := strings.Cut(text, "@")
	d := jobdir.DatasetConfig{Name: &name}
	switch {
	case d.Kind() == jobdir.RegistryDataset && given:
		d.Version = &version
	case d.Kind() == jobdir.PackageDataset && given:
		d.Ref = &version
	case d.Kind() == jobdir.PackageDataset:
		d.Ref = new("latest")
	}
	return d
}

func (o Overrides) filtered(d jobdir.DatasetConfig) jobdir.DatasetConfig {
	d.TaskNames, d.ExcludeTaskNames, d.NTasks = o.IncludeTasks, o.ExcludeTasks, o.NTasks
	d.RegistryURL = o.RegistryURL
	if o.RegistryPath != nil {
		d.RegistryPath = new(schema.CleanPath(*o.RegistryPath))
	}
	return d
}
