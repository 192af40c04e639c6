package job

import (
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/internal/schema"
	"github.com/proctor-run/proctor/trial"
)

// Messages of wrong combinations, in the format's words.
var (
	errBothTaskAndDataset = trial.RuleError("Cannot specify both task and dataset parameters")
	errGitWithoutPath     = trial.RuleError("Task configuration with --task-git-url requires --path")
	errFilterWithout      = trial.RuleError("Cannot specify --registry-url, --registry-path, --include-task-name, or --exclude-task-name without also specifying --dataset, --task, or --path.")
)

// applyTasks chooses what to run. A task wins over a dataset, and either
// replaces what the configuration names.
func (o Overrides) applyTasks(c *Config, isTask func(string) bool) error {
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
		c.Datasets = []DatasetConfig{o.filtered(namedDataset(*o.Dataset))}
	case o.RegistryURL != nil || o.RegistryPath != nil || len(o.IncludeTasks) > 0 || len(o.ExcludeTasks) > 0:
		return errFilterWithout
	}
	return nil
}

// applyPath makes a path one task when it is a valid task directory, and a
// dataset otherwise. Settings for a git repository only go with a task.
func (o Overrides) applyPath(c *Config, isTask func(string) bool) error {
	path := schema.CleanPath(*o.Path)
	c.Tasks, c.Datasets = nil, nil
	if isTask(path) {
		c.Tasks = []trial.TaskConfig{{Path: &path, GitURL: o.GitURL, GitCommitID: o.GitCommit}}
		if o.GitCommit != nil && o.GitURL == nil {
			return trial.ErrCommitWithoutURL
		}
		return nil
	}
	c.Datasets = []DatasetConfig{o.filtered(DatasetConfig{Path: &path})}
	return nil
}

func (o Overrides) applyPackageTask(c *Config) error {
	name, ref := *o.Task, "latest"
	if i := strings.LastIndexByte(name, '@'); i >= 0 {
		name, ref = name[:i], name[i+1:]
	}
	if !isPackageName(name) {
		return fmt.Errorf("1 validation error for PackageReference\nname\n  Value error, Package name must be in 'org/name' format with alphanumeric characters, hyphens, underscores, and dots. Cannot start with a dot or contain '..'. Got: %s [type=value_error, input_value='%s', input_type=str]", name, name)
	}
	c.Tasks, c.Datasets = []trial.TaskConfig{{Name: &name, Ref: &ref}}, nil
	return nil
}

// namedDataset splits NAME[@VERSION]: a name with a slash is a package whose
// reference defaults to latest, any other is an entry of a registry.
func namedDataset(text string) DatasetConfig {
	name, version, given := strings.Cut(text, "@")
	d := DatasetConfig{Name: &name}
	switch {
	case d.Kind() == RegistryDataset && given:
		d.Version = &version
	case d.Kind() == PackageDataset && given:
		d.Ref = &version
	case d.Kind() == PackageDataset:
		d.Ref = new("latest")
	}
	return d
}

func (o Overrides) filtered(d DatasetConfig) DatasetConfig {
	d.TaskNames, d.ExcludeTaskNames, d.NTasks = o.IncludeTasks, o.ExcludeTasks, o.NTasks
	d.RegistryURL = o.RegistryURL
	if o.RegistryPath != nil {
		d.RegistryPath = new(schema.CleanPath(*o.RegistryPath))
	}
	return d
}
