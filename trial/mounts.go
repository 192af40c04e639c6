package trial

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/enginesocket"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

// CheckMounts refuses mounts of a configuration that would show a container
// engine's socket to a sandbox: the socket itself or a directory above it, as
// source, also through links, or as target (outcome mapping, section 13.2). The
// error names the mount. getenv finds variables of this machine.
func CheckMounts(mounts []*value.Object, getenv func(string) string) error {
	if len(mounts) == 0 {
		return nil
	}
	sockets := enginesocket.Known(getenv)
	for _, m := range mounts {
		source, err := sourceOf(m)
		if err != nil {
			return err
		}
		if socket := enginesocket.Shown(source, textOf(m, "target"), sockets); socket != "" {
			return exception.Errorf(exception.ValueError,
				"the mount of %q at %q shows the sandbox a container engine's socket, %s, and with it this machine; --allow-engine-socket lets it pass",
				textOf(m, "source"), textOf(m, "target"), socket)
		}
	}
	return nil
}

func textOf(m *value.Object, key string) string {
	v, _ := m.Get(key)
	s, _ := v.(value.Str)
	return string(s)
}

// sourceOf is the place on this machine that a mount shows; empty for none.
func sourceOf(m *value.Object) (string, error) {
	if textOf(m, "type") != "bind" {
		return "", nil
	}
	source, err := filepath.Abs(textOf(m, "source"))
	if err != nil {
		return "", fmt.Errorf("mount on %q: %w", textOf(m, "target"), err)
	}
	return source, nil
}

// mount reads one of the configuration's mounts, a volume of a compose service
// in its long form (Harbor task format, section 4.6).
func (p *planner) mount(m *value.Object) (sandbox.Mount, error) {
	readOnly, _ := m.Get("read_only")
	ro, _ := readOnly.(value.Bool)
	out := sandbox.Mount{Source: textOf(m, "source"), Target: textOf(m, "target"), ReadOnly: bool(ro)}
	switch kind := textOf(m, "type"); {
	case kind == "volume" && p.r.Backend.Capabilities().Volumes:
		out.Volume = true
		return out, nil
	case kind != "bind":
		return out, exception.Errorf(exception.ValueError, "mount of type '%s' on %s: environment %s mounts %s",
			kind, out.Target, p.r.Backend.Name(), mountable(p.r.Backend.Capabilities()))
	}
	var err error
	if out.Source, err = sourceOf(m); err != nil {
		return out, err
	}
	if _, err := os.Stat(out.Source); errors.Is(err, fs.ErrNotExist) {
		return out, exception.Errorf(exception.FileNotFoundError, "mount on %s: %s does not exist", out.Target, out.Source)
	}
	return out, nil
}

func mountable(can sandbox.Capabilities) string {
	if can.Volumes {
		return "directories of the host and volumes only (types 'bind' and 'volume')"
	}
	return "directories of the host only (type 'bind')"
}
