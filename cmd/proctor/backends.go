package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/internal/suggest"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// findDirectories finds where proctor keeps files besides the jobs.
func findDirectories(env *Env) (sandboxes.Directories, error) {
	return sandboxes.FindDirectories(env.Getenv)
}

// backendOptions are what the command line and the configuration say of a
// backend.
type backendOptions struct {
	name string // of the backend
	sandboxes.Options
}

// backends are those that can be chosen in this program.
func backends() sandboxes.Registry { return sandboxes.Builtin() }

// in returns the options for the program's own environment.
func (o backendOptions) in(env *Env) sandboxes.Options {
	opts := o.Options
	opts.Backends = backends()
	opts.Environ, opts.Now, opts.Helpers = env.Environ, env.Now, helpers()
	if opts.Environ == nil {
		opts.Environ = []string{}
	}
	opts.Notice = func(line string) { _, _ = fmt.Fprintf(env.Stderr, "proctor: %s\n", line) }
	return opts
}

// environmentSettings are the settings that environments have.
func environmentSettings() []string {
	return []string{trial.KeepContainers, "mirror", "network", "pids_limit", "runtime", "show"}
}

// checkSettings refuses settings, given as --ek, that no environment has.
func checkSettings(given []string) error {
	for _, kv := range given {
		key, _, _ := strings.Cut(kv, "=")
		if key = strings.TrimSpace(key); slices.Contains(environmentSettings(), key) {
			continue
		}
		return withHint(usageErrorf("--ek %s: no environment has a setting of this name", key), "%s", nearestSetting(key))
	}
	return nil
}

// warnSettings warns of a configuration's settings that no environment has. They are not
// refused: it may be of a runner that knows them.
func warnSettings(env *Env, cfg jobdir.EnvironmentConfig) {
	if cfg.Kwargs == nil {
		return
	}
	for key := range cfg.Kwargs.All() {
		if !slices.Contains(environmentSettings(), key) {
			_, _ = fmt.Fprintf(env.Stderr, "proctor: warning: environment.kwargs.%s is ignored: no environment has a setting of this name; %s\n",
				clean(key), nearestSetting(key))
		}
	}
}

func nearestSetting(key string) string {
	if hint := suggest.DidYouMean("", suggest.Nearest(key, environmentSettings())); hint != "" {
		return hint
	}
	return "the settings are " + strings.Join(environmentSettings(), ", ")
}

// checkMirror refuses a directory that is no OCI layout, which would be asked for
// every image in vain.
func checkMirror(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "index.json")); err != nil {
		return withHint(usageErrorf("environment setting mirror: %q is not an OCI layout directory: %w", dir, err),
			"'proctor image export' writes one")
	}
	return nil
}

// optionsOf reads the settings of an environment, given as --ek.
func optionsOf(cfg jobdir.EnvironmentConfig, runtime string) (backendOptions, error) {
	var o backendOptions
	o.Runtime = runtime
	if cfg.Kwargs == nil {
		return o, nil
	}
	if v, ok := cfg.Kwargs.Get("runtime"); ok && runtime == "" {
		name, isText := v.(value.Str)
		if !isText {
			return o, usageErrorf("environment setting runtime: want a name, have %s", value.Repr(v))
		}
		o.Runtime = string(name)
	}
	if v, ok := cfg.Kwargs.Get("pids_limit"); ok {
		limit, isInt := v.(value.Int)
		n, fits := limit.Int64()
		if !isInt || !fits || n == 0 {
			return o, usageErrorf("environment setting pids_limit: want a number of processes, or -1 for no limit, have %s", value.Repr(v))
		}
		o.PIDs = n
	}
	if v, ok := cfg.Kwargs.Get("network"); ok {
		if err := o.setNetwork(v); err != nil {
			return o, err
		}
	}
	var err error
	if o.Mirrors, err = textsOf(cfg, "mirror", "directory"); err != nil {
		return o, err
	}
	for _, dir := range o.Mirrors {
		if err := checkMirror(dir); err != nil {
			return o, err
		}
	}
	o.Show, err = textsOf(cfg, "show", "path")
	return o, err
}

// textsOf reads a setting that is a text or a list of texts.
func textsOf(cfg jobdir.EnvironmentConfig, key, kind string) ([]string, error) {
	v, ok := cfg.Kwargs.Get(key)
	if !ok {
		return nil, nil
	}
	list, isList := v.(value.List)
	if !isList {
		list = value.List{v}
	}
	var texts []string
	for _, item := range list {
		text, isText := item.(value.Str)
		if !isText {
			return nil, usageErrorf("environment setting %s: want a %s or a list of them, have %s", key, kind, value.Repr(item))
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}

// setNetwork opens the network of sandboxes further than it is by itself.
func (o *backendOptions) setNetwork(v value.Value) error {
	switch name, _ := v.(value.Str); name {
	case "machine":
		o.Egress.Machine = true
	case "host":
		o.HostNetwork, o.Egress.Machine = true, true
	default:
		return withHint(usageErrorf("environment setting network: want machine or host, have %s", value.Repr(v)),
			"machine lets sandboxes reach this machine's own addresses and its containers' networks, host lets public sandboxes share this machine's network")
	}
	return nil
}
