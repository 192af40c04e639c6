// Package enginesocket knows where container engines listen on a machine. Whoever
// reaches such a socket has the machine, so no mount may show one to a sandbox.
package enginesocket

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// The sockets of the own runner's rule (outcome mapping, section 13.2).
const (
	Docker = "/var/run/docker.sock"
	Dstack = "/var/run/dstack.sock"
)

// podman is where root's Podman listens.
const podman = "/run/podman/podman.sock"

// Above returns the first of the sockets that a path is, or is a directory above;
// empty for none. The path is cleaned first; what is not absolute is above
// nothing.
func Above(place string, sockets []string) string {
	if !path.IsAbs(place) {
		return ""
	}
	place = strings.TrimSuffix(path.Clean(place), "/")
	i := slices.IndexFunc(sockets, func(socket string) bool { return strings.HasPrefix(socket+"/", place+"/") })
	if i < 0 {
		return ""
	}
	return sockets[i]
}

// Known lists the sockets of engines on this machine, whether they are there or
// not: the usual places, those of the user's own engines, and the one that
// Find finds, which DOCKER_HOST or a context of the docker command may name. Each stands with its links followed too.
func Known(getenv func(string) string) []string {
	sockets := []string{
		Docker, Dstack, "/run/docker.sock", "/run/dstack.sock",
		podman, "/var/run/podman/podman.sock",
		"/run/containerd/containerd.sock", "/var/run/containerd/containerd.sock",
		"/run/crio/crio.sock", "/var/run/crio/crio.sock",
	}
	sockets = append(sockets, usersOwn(getenv)...)
	// What cannot be found is spoken to by nobody here.
	if used, err := Find("", getenv); err == nil {
		if socket, ok := strings.CutPrefix(used.Host, "unix://"); ok && path.IsAbs(socket) {
			sockets = append(sockets, path.Clean(socket))
		}
	}
	for _, socket := range slices.Clone(sockets) {
		if real := followed(socket); real != socket && !slices.Contains(sockets, real) {
			sockets = append(sockets, real)
		}
	}
	return sockets
}

// usersOwn are the sockets of engines that users start for themselves.
func usersOwn(getenv func(string) string) []string {
	var sockets []string
	if home := getenv("HOME"); path.IsAbs(home) {
		sockets = append(sockets, path.Join(home, ".docker/run/docker.sock"))
	}
	if dir := getenv("XDG_RUNTIME_DIR"); path.IsAbs(dir) {
		sockets = append(sockets, path.Join(dir, "docker.sock"), path.Join(dir, "podman/podman.sock"))
	}
	return sockets
}

// Shown returns the socket that a mount would show in a sandbox, as its source,
// also through links, or as its target; empty for none. source is empty for what
// is no place on this machine.
func Shown(source, target string, sockets []string) string {
	for _, place := range []string{source, followed(source), target} {
		if socket := Above(place, sockets); socket != "" {
			return socket
		}
	}
	return ""
}

// followed is a path without links, as far as it exists.
func followed(place string) string {
	if place == "" {
		return ""
	}
	rest := ""
	for dir := path.Clean(place); ; dir = path.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return path.Join(real, rest)
		}
		if dir == "/" || dir == "." {
			return place
		}
		rest = path.Join(path.Base(dir), rest)
	}
}
