package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
	"github.com/proctor-run/proctor/sandbox/egress"
	"github.com/proctor-run/proctor/sandbox/oci"
	"github.com/proctor-run/proctor/sandbox/oci/image"
	"github.com/proctor-run/proctor/value"
)

// Directories that proctor keeps things in besides the jobs.
type directories struct {
	// state holds what belongs to running sandboxes, cache what can be had
	// again.
	state, cache string
}

// images is where -e sandbox keeps images.
func (d directories) images() string { return filepath.Join(d.cache, "images") }

// findDirectories follows PROCTOR_STATE_DIR and PROCTOR_CACHE_DIR, then the
// XDG variables; root without them uses /var/lib and /var/cache.
func findDirectories(env *Env) (directories, error) {
	home := env.Getenv("HOME")
	root := os.Geteuid() == 0
	find := func(own, xdg, below, system string) (string, error) {
		switch {
		case env.Getenv(own) != "":
			return filepath.Abs(env.Getenv(own))
		case env.Getenv(xdg) != "":
			return filepath.Join(env.Getenv(xdg), "proctor"), nil
		case root:
			return system, nil
		case home != "":
			return filepath.Join(home, below, "proctor"), nil
		}
		return "", usageErrorf("no place for proctor's files: set HOME or %s", own)
	}
	state, stateErr := find("PROCTOR_STATE_DIR", "XDG_STATE_HOME", ".local/state", "/var/lib/proctor")
	cache, cacheErr := find("PROCTOR_CACHE_DIR", "XDG_CACHE_HOME", ".cache", "/var/cache/proctor")
	return directories{state: state, cache: cache}, errors.Join(stateErr, cacheErr)
}

// backendOptions are what the command line and the configuration say of a
// backend beyond its name.
type backendOptions struct {
	name    string // of the backend
	runtime string
	// mirrors are OCI layout directories that are asked for images before a
	// registry is.
	mirrors []string
	// mask lists host paths that backend host must not show.
	mask []string
	// egress is how the egress proxy reaches the world.
	egress egress.Upstream
	// cleaning: no sandbox will be made.
	cleaning bool
}

// optionsOf reads the settings of an environment, given as --ek.
func optionsOf(cfg jobdir.EnvironmentConfig, runtime string) (backendOptions, error) {
	o := backendOptions{runtime: runtime}
	if cfg.Kwargs == nil {
		return o, nil
	}
	if v, ok := cfg.Kwargs.Get("runtime"); ok && runtime == "" {
		name, isText := v.(value.Str)
		if !isText {
			return o, usageErrorf("environment setting runtime: want a name, have %s", value.Repr(v))
		}
		o.runtime = string(name)
	}
	if v, ok := cfg.Kwargs.Get("mirror"); ok {
		list, isList := v.(value.List)
		if !isList {
			list = value.List{v}
		}
		for _, item := range list {
			dir, isText := item.(value.Str)
			if !isText {
				return o, usageErrorf("environment setting mirror: want a directory or a list of them, have %s", value.Repr(item))
			}
			o.mirrors = append(o.mirrors, string(dir))
		}
	}
	return o, nil
}

// ourBackends are the names that openBackend knows.
var ourBackends = []string{sandbox.BackendDocker, sandbox.BackendSandbox, sandbox.BackendHost}

// checkRuntime refuses --runtime for environments that have none to choose.
func checkRuntime(runtime, environment string) error {
	if runtime == "" || environment == sandbox.BackendSandbox || environment == sandbox.BackendHost {
		return nil
	}
	return usageErrorf("--runtime %s: environment %s does not run commands with it; it is for -e sandbox and -e host", runtime, environment)
}

// openBackend makes a backend; it does not look whether it works here. close
// releases what the backend holds open.
func openBackend(ctx context.Context, env *Env, name string, o backendOptions) (b sandbox.Backend, closeBackend func() error, err error) {
	nothing := func() error { return nil }
	switch name {
	case sandbox.BackendDocker:
		b, err := docker.New(docker.Options{Getenv: env.Getenv, Environ: env.Environ, Now: env.Now, Guest: dockerGuest(env), Egress: o.egress})
		if err != nil {
			return nil, nil, err
		}
		return b, nothing, nil
	case sandbox.BackendSandbox, sandbox.BackendHost:
		return openOCI(ctx, env, name, o)
	}
	return nil, nil, withHint(usageErrorf("environment %q cannot be run here", name), "choose one of these with -e: %s", strings.Join(ourBackends, ", "))
}

func openOCI(ctx context.Context, env *Env, name string, o backendOptions) (sandbox.Backend, func() error, error) {
	opts, closeStore, err := ociOptions(ctx, env, name, o)
	if err != nil {
		return nil, nil, err
	}
	b, err := oci.New(opts)
	if err != nil {
		return nil, nil, errors.Join(err, closeStore())
	}
	return b, closeStore, nil
}

// ociOptions are the options of the daemonless backends on this machine.
func ociOptions(ctx context.Context, env *Env, name string, o backendOptions) (opts oci.Options, closeStore func() error, err error) {
	dirs, err := findDirectories(env)
	if err != nil {
		return opts, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return opts, nil, fmt.Errorf("finding the program: %w", err)
	}
	// The host's own files have the libraries that this program may need.
	needsStatic := name != sandbox.BackendHost || o.runtime == "" || o.runtime == oci.RuntimeGVisor
	if needsStatic && !o.cleaning {
		if self, err = staticProgram(ctx, env, self, dirs.cache); err != nil {
			return opts, nil, err
		}
	}
	opts = oci.Options{
		Host:       name == sandbox.BackendHost,
		StateDir:   filepath.Join(dirs.state, "sandboxes"),
		Executable: self,
		Guest:      guestBeside(self),
		Build:      version.Current().ID(),
		Runtime:    o.runtime,
		Now:        env.Now,
		Egress:     o.egress,
		Mask:       slices.Concat(o.mask, []string{dirs.state, dirs.cache}),
	}
	if opts.Host {
		return opts, func() error { return nil }, nil
	}
	store, err := image.Open(dirs.images(), image.Options{Mirrors: o.mirrors})
	if err != nil {
		return opts, nil, err
	}
	opts.Images = store
	return opts, store.Close, nil
}

// guestBeside finds the small supervisor that a release has beside the program;
// empty means that the program itself is the supervisor.
func guestBeside(self string) string {
	path := filepath.Join(filepath.Dir(self), oci.GuestArg0)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return ""
	}
	return path
}

// chooseBackend resolves "auto", for which an empty name stands too: docker if
// an engine answers, else sandbox; sandbox when a runtime is asked for.
func chooseBackend(ctx context.Context, env *Env, name, runtime string) (string, error) {
	if name != environmentAuto && name != "" {
		return name, checkRuntime(runtime, name)
	}
	if runtime != "" || !engineWorks(ctx, env) {
		return sandbox.BackendSandbox, nil
	}
	return sandbox.BackendDocker, nil
}

func engineWorks(ctx context.Context, env *Env) bool {
	b, closeBackend, err := openBackend(ctx, env, sandbox.BackendDocker, backendOptions{})
	if err != nil {
		return false
	}
	defer func() { _ = closeBackend() }()
	return b.Check(ctx) == nil
}
