package trial

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

// mount reads one of the configuration's mounts, a volume of a compose service
// in its long form (Harbor task format, section 4.6).
func (p *planner) mount(m *value.Object) (sandbox.Mount, error) {
	text := func(key string) string {
		v, _ := m.Get(key)
		s, _ := v.(value.Str)
		return string(s)
	}
	readOnly, _ := m.Get("read_only")
	ro, _ := readOnly.(value.Bool)
	out := sandbox.Mount{Source: text("source"), Target: text("target"), ReadOnly: bool(ro)}
	switch kind := text("type"); {
	case kind == "volume" && p.r.Backend.Capabilities().Volumes:
		out.Volume = true
		return out, nil
	case kind != "bind":
		return out, exception.Errorf(exception.ValueError, "mount of type '%s' on %s: environment %s mounts %s",
			kind, out.Target, p.r.Backend.Name(), mountable(p.r.Backend.Capabilities()))
	}
	var err error
	if out.Source, err = filepath.Abs(out.Source); err != nil {
		return out, fmt.Errorf("mount on %q: %w", out.Target, err)
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
