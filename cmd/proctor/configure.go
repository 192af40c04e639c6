package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/dotenv"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// given tells what the command line or the configuration file names.
type given struct {
	backend bool // an environment
	jobName bool
}

// configure makes the job's configuration and refuses one that cannot be run.
func configure(env *Env, f *runFlags) (cfg jobdir.Config, names given, err error) {
	if cfg, names, err = mergeConfig(env, f); err != nil {
		return cfg, names, err
	}
	if err := cfg.CheckRunnable(); err != nil {
		return cfg, names, usageErrorf("%w", err)
	}
	return cfg, names, nil
}

// mergeConfig makes the job's configuration: that of the file or the default,
// with the command line on top.
func mergeConfig(env *Env, f *runFlags) (cfg jobdir.Config, names given, err error) {
	if err := f.checkHub(); err != nil {
		return cfg, names, err
	}
	if err := f.junit.check(); err != nil {
		return cfg, names, err
	}
	cfg = jobdir.NewConfig(env.Now().Local())
	if f.config != "" {
		if cfg, names, err = readConfig(env, f.config); err != nil {
			return cfg, names, err
		}
	}
	names.backend = names.backend || f.set.EnvironmentType != nil || f.set.EnvironmentImportPath != nil
	names.jobName = names.jobName || f.set.JobName != nil
	for _, path := range f.mcpConfigs {
		servers, err := job.ReadMCPServers(path)
		if err != nil {
			return cfg, names, usageErrorf("%w", err)
		}
		f.set.MCPServers = append(f.set.MCPServers, servers...)
	}
	isTask := func(path string) bool {
		return harbor.IsValidDir(path, cfg.Verifier.Disable || f.set.DisableVerification)
	}
	if err := f.set.Apply(&cfg, isTask); err != nil {
		return cfg, names, usageErrorf("%w", err)
	}
	return cfg, names, nil
}

// readConfig reads a configuration file; keys that mean nothing are named in a
// warning.
func readConfig(env *Env, path string) (cfg jobdir.Config, names given, err error) {
	data, format, names, err := readConfigFile("job", path)
	if err != nil {
		return cfg, names, err
	}
	cfg, report, err := jobdir.ParseConfig(data, format, env.Now().Local())
	if err != nil {
		return cfg, names, usageErrorf("%s: %w", path, err)
	}
	for _, loc := range report.Unknown {
		_, _ = fmt.Fprintf(env.Stderr, "proctor: warning: %s: unknown key %s is ignored\n", path, clean(loc.String()))
	}
	return cfg, names, nil
}

// readConfigFile reads the document of a job or trial configuration, and which
// of the names it has that proctor would choose otherwise. It may name proctor's
// own environments as the command line does: data then has them as Harbor's
// schema allows.
func readConfigFile(what, path string) (data []byte, format jobdir.Format, names given, err error) {
	format, err = jobdir.FormatOf(path)
	if err != nil {
		return nil, format, names, withHint(usageErrorf("%w", err), "name the file .yaml or .json")
	}
	if data, err = os.ReadFile(path); err != nil {
		return nil, format, names, usageErrorf("reading the %s configuration: %w", what, err)
	}
	doc, err := jobdir.DecodeDocument(data, format)
	if err != nil {
		return nil, format, names, usageErrorf("%s: %w", path, err)
	}
	changed, err := adoptEnvironment(doc)
	if err != nil {
		if choice, ok := errors.AsType[*choiceError](err); ok && len(choice.near) > 0 {
			return nil, format, names, withHint(usageErrorf("%s: environment.type: %w", path, err), "%s", didYouMean(choice.near))
		}
		return nil, format, names, usageErrorf("%s: environment.type: %w", path, err)
	}
	if changed {
		data, format = value.AppendDumps(nil, doc, value.DumpsOptions{}), jobdir.JSON
	}
	return data, format, namedBy(doc), nil
}

// adoptEnvironment replaces the name of an environment that only proctor has.
// One that nobody has is refused.
func adoptEnvironment(doc value.Value) (changed bool, err error) {
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
	if _, err := parseEnvironment(string(name)); err != nil {
		return false, err
	}
	if name == sandboxes.Auto {
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

func namedBy(doc value.Value) (names given) {
	root, _ := doc.(*value.Object)
	if root == nil {
		return names
	}
	v, _ := root.Get("environment")
	environment, _ := v.(*value.Object)
	names.backend = environment != nil && (environment.Has("type") || environment.Has("import_path"))
	names.jobName = root.Has("job_name")
	return names
}

// checkHub answers wrong combinations of the hub's flags as Harbor does.
func (f *runFlags) checkHub() error {
	switch {
	case f.upload:
		return nil
	case f.public != nil:
		return usageErrorf("--public / --private requires --upload.")
	case len(f.shareOrgs)+len(f.shareUsers) > 0:
		return usageErrorf("--share-org / --share-user requires --upload.")
	}
	return nil
}

// maxEnvFile bounds what is read of --env-file, in bytes.
const maxEnvFile = 1 << 20

// loadEnvFile puts the variables of a file over those of the process, and
// returns their names.
func loadEnvFile(env *Env, path string) (map[string]bool, error) {
	if path == "" {
		return nil, nil
	}
	text, err := bounded.ReadFile(path, maxEnvFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, usageErrorf("Env file not found: %s", path)
	case err != nil:
		return nil, usageErrorf("--env-file: %w", err)
	case !utf8.Valid(text):
		return nil, usageErrorf("reading --env-file %q: it is not UTF-8", path)
	}
	vars, warnings := dotenv.Parse(string(text), env.Lookup)
	for _, w := range warnings {
		_, _ = fmt.Fprintf(env.Stderr, "proctor: warning: %s: %s\n", path, w)
	}
	names := map[string]bool{}
	for _, v := range vars {
		env.Environ = append(env.Environ, v.Name+"="+v.Value)
		names[v.Name] = true
	}
	return names, nil
}

// registerRunCompletions completes the configuration file; the other flags say
// themselves what they take.
func registerRunCompletions(cmd *cobra.Command) {
	if err := cmd.MarkFlagFilename("config", "json", "yaml"); err != nil {
		panic(err) // the flag is not defined
	}
}

// confirmVariables shows which variables of this host the tasks will load, and
// asks; those of --env-file are meant for the tasks and need no question. A
// variable that is needed and not set ends the run before it starts.
func confirmVariables(ctx context.Context, env *Env, p *job.Prepared, fromFile map[string]bool, yes bool) error {
	var missing, loaded []job.HostVariable
	for _, v := range p.HostVariables(env.Lookup) {
		switch {
		case v.Missing:
			missing = append(missing, v)
		case v.Set && !fromFile[v.Name]:
			loaded = append(loaded, v)
		}
	}
	if len(missing) > 0 {
		_, _ = fmt.Fprintln(env.Stderr, "Missing Environment Variables")
		for _, v := range missing {
			_, _ = fmt.Fprintf(env.Stderr, "  %s  (%s, %s)\n", clean(v.Name), v.Phase, clean(v.Task))
		}
		return withHint(usageErrorf("the tasks need %s that this machine does not set", count(len(missing), "variable")), "export them, or give them in a file with --env-file")
	}
	in, isFile := env.Stdin.(*os.File)
	if yes || len(loaded) == 0 || !isFile || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	_, _ = fmt.Fprintln(env.Stderr, "Tasks in this run will load these from your environment:")
	for _, v := range loaded {
		_, _ = fmt.Fprintf(env.Stderr, "  %s  (%s, %s)\n", clean(v.Name), v.Phase, clean(v.Task))
	}
	_, _ = fmt.Fprint(env.Stderr, "Proceed? (Y/n): ")
	ctx, stop := interruptible(ctx, env)
	defer stop()
	answer, err := readLine(ctx, in)
	if err != nil {
		_, _ = fmt.Fprintln(env.Stderr)
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "n", "no":
		return errQuiet(exitOK)
	}
	return nil
}

// readLine reads one line, or gives up when ctx ends. A read of a terminal
// cannot be called off: its goroutine then ends with the process.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	type reading struct {
		line string
		err  error
	}
	read := make(chan reading, 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		read <- reading{line, err}
	}()
	select {
	case r := <-read:
		if r.err != nil && r.line == "" {
			return "", errors.New("aborted: no answer")
		}
		return r.line, nil
	case <-ctx.Done():
		return "", errInterrupted
	}
}
