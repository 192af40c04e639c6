package jobcli

import (
	"errors"
	"fmt"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/flags"
	"github.com/proctor-run/proctor/internal/suggest"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// Named tells what the command line or the configuration file names.
type Named struct {
	Environment bool
	Job         bool
}

// Configure makes the job's configuration and refuses one that cannot be run.
func (p *Program) Configure(f *Flags) (cfg jobdir.Config, names Named, err error) {
	if cfg, names, err = p.Merge(f); err != nil {
		return cfg, names, err
	}
	if err := cfg.CheckRunnable(); err != nil {
		if f.Config != "" && f.Set.JobName == nil { // other flags are checked where they are read
			err = fmt.Errorf("%s: %w", f.Config, err)
		}
		return cfg, names, exitcode.Usagef("%w", err)
	}
	return cfg, names, nil
}

// Merge makes the job's configuration: that of the file or the default,
// with the command line on top.
func (p *Program) Merge(f *Flags) (cfg jobdir.Config, names Named, err error) {
	if err := f.CheckHub(); err != nil {
		return cfg, names, err
	}
	if err := errors.Join(f.JUnit.check(), f.CheckPolicy()); err != nil {
		return cfg, names, err
	}
	cfg = jobdir.NewConfig(p.Now().Local())
	if f.Config != "" {
		if cfg, names, err = p.readConfig(f.Config); err != nil {
			return cfg, names, err
		}
	}
	names.Environment = names.Environment || f.Set.EnvironmentType != nil || f.Set.EnvironmentImportPath != nil
	names.Job = names.Job || f.Set.JobName != nil
	for _, path := range f.MCPConfigs {
		servers, err := job.ReadMCPServers(path)
		if err != nil {
			return cfg, names, exitcode.Usagef("%w", err)
		}
		f.Set.MCPServers = append(f.Set.MCPServers, servers...)
	}
	isTask := func(path string) bool {
		return harbor.IsValidDir(path, cfg.Verifier.Disable || f.Set.DisableVerification)
	}
	if err := f.Set.Apply(&cfg, isTask); err != nil {
		return cfg, names, exitcode.Usagef("%w", err)
	}
	return cfg, names, nil
}

// readConfig reads a configuration file; keys that mean nothing are named in a
// warning.
func (p *Program) readConfig(path string) (cfg jobdir.Config, names Named, err error) {
	data, format, names, err := p.ReadConfigFile("job", path)
	if err != nil {
		return cfg, names, err
	}
	cfg, report, err := jobdir.ParseConfig(data, format, p.Now().Local())
	if err != nil {
		return cfg, names, exitcode.Usagef("%s: %w", path, err)
	}
	for _, loc := range report.Unknown {
		_, _ = fmt.Fprintf(p.Stderr, "%s: warning: %s: unknown key %s is ignored\n", p.Name, path, console.Clean(loc.String()))
	}
	return cfg, names, nil
}

// maxConfig bounds a configuration file, in bytes: a job of many thousand tasks that are
// named one by one has some megabytes.
const maxConfig = 256 << 20

// ReadConfigFile reads the document of a job or trial configuration, and which
// of the names it has that proctor would choose otherwise. It may name proctor's
// own environments as the command line does: data then has them as Harbor's
// schema allows.
func (p *Program) ReadConfigFile(what, path string) (data []byte, format jobdir.Format, names Named, err error) {
	format, err = jobdir.FormatOf(path)
	if err != nil {
		return nil, format, names, exitcode.WithHint(exitcode.Usagef("%w", err), "name the file .yaml or .json")
	}
	if data, err = bounded.ReadFile(path, maxConfig); err != nil {
		return nil, format, names, exitcode.Usagef("reading the %s configuration: %w", what, err)
	}
	doc, err := jobdir.DecodeDocument(data, format)
	if err != nil {
		return nil, format, names, exitcode.Usagef("%s: %w", path, err)
	}
	changed, err := p.adoptEnvironment(doc)
	if err != nil {
		if choice, ok := errors.AsType[*flags.ChoiceError](err); ok && len(choice.Near) > 0 {
			return nil, format, names, exitcode.WithHint(exitcode.Usagef("%s: environment.type: %w", path, err), "%s", suggest.DidYouMean("", choice.Near))
		}
		return nil, format, names, exitcode.Usagef("%s: environment.type: %w", path, err)
	}
	if changed {
		data, format = value.AppendDumps(nil, doc, value.DumpsOptions{}), jobdir.JSON
	}
	return data, format, namedBy(doc), nil
}

// adoptEnvironment replaces the name of an environment that only proctor has.
// One that nobody has is refused.
func (p *Program) adoptEnvironment(doc value.Value) (changed bool, err error) {
	root, _ := doc.(*value.Object)
	if root == nil {
		return false, nil
	}
	v, _ := root.Get("environment")
	environment, _ := v.(*value.Object)
	if environment == nil {
		return false, nil
	}
	v, _ = environment.Get("type")
	name, isText := v.(value.Str)
	if !isText {
		return false, nil
	}
	if _, err := p.parseEnvironment(string(name)); err != nil {
		return false, err
	}
	if name == Auto {
		environment.Delete("type")
		return true, nil
	}
	var set jobdir.EnvironmentConfig
	if set.SetBackend(string(name)); set.ImportPath == nil {
		return false, nil
	}
	environment.Delete("type")
	environment.Set("import_path", value.Str(*set.ImportPath))
	return true, nil
}

func namedBy(doc value.Value) (names Named) {
	root, _ := doc.(*value.Object)
	if root == nil {
		return names
	}
	v, _ := root.Get("environment")
	environment, _ := v.(*value.Object)
	names.Environment = environment != nil && (environment.Has("type") || environment.Has("import_path"))
	names.Job = root.Has("job_name")
	return names
}
