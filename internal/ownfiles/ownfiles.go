// Package ownfiles says where the programs of this module keep files of their own,
// besides those of jobs.
package ownfiles

import (
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/internal/exitcode"
)

// Lookup finds a variable of the environment.
type Lookup func(name string) (string, bool)

func (l Lookup) get(name string) string {
	v, _ := l(name)
	return v
}

// State is the directory for what belongs to running sandboxes.
func State(lookup Lookup) (string, error) {
	return lookup.find("PROCTOR_STATE_DIR", "XDG_STATE_HOME", ".local/state", "/var/lib/proctor")
}

// Cache is the directory for what can be had again.
func Cache(lookup Lookup) (string, error) {
	return lookup.find("PROCTOR_CACHE_DIR", "XDG_CACHE_HOME", ".cache", "/var/cache/proctor")
}

// Agents is the directory for files of agents that the user has written: PROCTOR_AGENTS_DIR,
// or one below XDG_CONFIG_HOME or the home directory; empty where there is none of them.
func Agents(lookup Lookup) string {
	if dir := lookup.get("PROCTOR_AGENTS_DIR"); dir != "" {
		return dir
	}
	if dir := lookup.get("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "proctor", "agents")
	}
	if home := lookup.get("HOME"); home != "" {
		return filepath.Join(home, ".config", "proctor", "agents")
	}
	return ""
}

// find follows a variable of proctor's own, then that of XDG; root without them uses
// a directory of the system.
func (l Lookup) find(own, xdg, below, system string) (string, error) {
	switch home := l.get("HOME"); {
	case l.get(own) != "":
		return filepath.Abs(l.get(own))
	case l.get(xdg) != "":
		return filepath.Join(l.get(xdg), "proctor"), nil
	case os.Geteuid() == 0:
		return system, nil
	case home != "":
		return filepath.Join(home, below, "proctor"), nil
	}
	return "", exitcode.Usagef("no place for proctor's files: set HOME or %s", own)
}

// Cubes is the directory for what cubes install: CUBE_CACHE_DIR, which is the
// working directory when it is set and empty, and ~/.cube, as installers in Python
// use them (CUBE, section 4.7), the latter where it exists; else a directory in
// [Cache].
func Cubes(lookup Lookup) (string, error) {
	if dir, ok := lookup("CUBE_CACHE_DIR"); ok {
		return filepath.Abs(dir)
	}
	if home := lookup.get("HOME"); home != "" {
		dir := filepath.Join(home, ".cube")
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	cache, err := Cache(lookup)
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "cubes"), nil
}
