package ownrunner

import (
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/enginesocket"
	"github.com/proctor-run/proctor/value"
)

// Container is a task's container as the runner starts it: hardened, with a
// read-only root. In this posture a verifier cannot be copied into /tests, and
// tasks cannot install packages; see the outcome mapping, section 13.1, before
// using it.
type Container struct {
	Engine         string // the engine's command
	Name           string
	Workdir        string
	Image          string
	CPUs           *float64
	MemoryMiB      *int
	AllowInternet  bool
	ReadOnlyMounts [][2]string // source and destination
}

// RunArgs returns the command line that starts the container.
func (c Container) RunArgs() []string {
	args := []string{
		c.Engine, "run", "-d", "--name", c.Name, "--label", "base.own_runner=1", "-w", c.Workdir,
		"--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--pids-limit", "512",
		"--tmpfs", "/tmp:rw,nosuid,nodev", "-v", "/workspace/agent",
	}
	for _, m := range c.ReadOnlyMounts {
		args = append(args, "-v", m[0]+":"+m[1]+":ro")
	}
	if c.CPUs != nil {
		args = append(args, "--cpus", strings.TrimSuffix(value.FloatRepr(*c.CPUs), ".0"))
	}
	if c.MemoryMiB != nil {
		memory := strconv.Itoa(*c.MemoryMiB) + "M"
		args = append(args, "--memory", memory, "--memory-reservation", memory)
	}
	if !c.AllowInternet {
		args = append(args, "--network", "none")
	}
	return append(args, c.Image, "sleep", "infinity")
}

// ImageTag makes the name of an image, for example "hb__" and a task's, one that
// engines accept.
func ImageTag(name string) string {
	var b strings.Builder
	// The one character whose lower case is an ASCII letter and more.
	name = strings.ToLower(strings.ReplaceAll(name, "İ", "i\u0307"))
	if name == "" || !isAlnum(rune(name[0])) {
		b.WriteByte('0')
	}
	for _, r := range name {
		if isAlnum(r) || r == '.' || r == '_' || r == '-' {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
	}
	return b.String()
}

// DefaultEngine is the engine's address if nothing is configured.
const DefaultEngine = "unix://" + enginesocket.Docker

// ExposedSockets returns the mounts on a command line that would show an engine's
// socket to the container: the socket itself or any directory above it, as
// source or target.
func ExposedSockets(args []string) []string {
	var exposed []string
	for i, arg := range args {
		flag, spec, joined := strings.Cut(arg, "=")
		if flag != "-v" && flag != "--volume" && flag != "--mount" {
			continue
		}
		if !joined {
			if i+1 == len(args) {
				break
			}
			spec = args[i+1]
		}
		for _, place := range placesOf(flag, spec) {
			if exposesSocket(place) {
				exposed = append(exposed, spec)
				break
			}
		}
	}
	return exposed
}

// placesOf returns the source and the target of a mount.
func placesOf(flag, spec string) []string {
	if flag != "--mount" {
		parts := strings.Split(spec, ":")
		return parts[:min(2, len(parts))]
	}
	var places []string
	for field := range strings.SplitSeq(spec, ",") {
		key, value, _ := strings.Cut(field, "=")
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "src", "source", "dst", "destination", "target":
			places = append(places, value)
		}
	}
	return places
}

func exposesSocket(place string) bool {
	return enginesocket.Above(value.Strip(place), []string{enginesocket.Docker, enginesocket.Dstack}) != ""
}

// EngineAddress returns the address of the engine to force upon child processes,
// given the one that is configured: blank is the default, TCP is refused.
func EngineAddress(configured string) (string, error) {
	address := value.Strip(configured)
	if address == "" {
		return DefaultEngine, nil
	}
	if strings.HasPrefix(strings.ToLower(address), "tcp://") {
		return "", exception.Errorf(exception.DoodConfigError, "the engine's address %q is not local: a TCP address is refused", address)
	}
	return address, nil
}

// BridgeFailed reports whether an engine's message says that it could not attach
// a container to its default bridge: the one failure after which a container may
// be started once more on the host's network.
func BridgeFailed(message string) bool {
	low := strings.ToLower(message)
	return strings.Contains(low, "failed to create endpoint") && strings.Contains(low, "on network bridge")
}

// NetworkFailed reports whether a message looks like a failure of the network,
// after which an image layer may be built once more on the host's network.
func NetworkFailed(message string) bool {
	low := strings.ToLower(message)
	for _, sign := range []string{
		"could not resolve", "temporary failure resolving", "temporary failure in name resolution",
		"name or service not known", "bad address", "connection timed out", "network is unreachable",
		"no route to host", "failed to fetch",
	} {
		if strings.Contains(low, sign) {
			return true
		}
	}
	return BridgeFailed(message)
}
