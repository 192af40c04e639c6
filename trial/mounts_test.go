package trial_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

func TestMounts(t *testing.T) {
	t.Parallel()
	here := t.TempDir()
	for _, c := range []struct {
		name, mount string
		volumes     bool
		allowed     bool
		want        sandbox.Mount
		exception   string
		message     string
	}{
		{name: "bind", mount: `{"type": "bind", "source": "` + here + `", "target": "/x", "read_only": true}`, want: sandbox.Mount{Source: here, Target: "/x", ReadOnly: true}},
		{name: "missing", mount: `{"type": "bind", "source": "` + here + `/none", "target": "/x"}`, exception: "FileNotFoundError", message: "mount on /x: "},
		{name: "volume", mount: `{"type": "volume", "source": "cache", "target": "/x"}`, volumes: true, want: sandbox.Mount{Source: "cache", Target: "/x", Volume: true}},
		{name: "volume without a name", mount: `{"type": "volume", "target": "/x"}`, volumes: true, want: sandbox.Mount{Target: "/x", Volume: true}},
		{name: "volume elsewhere", mount: `{"type": "volume", "source": "cache", "target": "/x"}`, exception: "ValueError",
			message: "mount of type 'volume' on /x: environment fake mounts directories of the host only (type 'bind')"},
		{name: "an engine's socket", mount: `{"type": "bind", "source": "/var/run", "target": "/x"}`, exception: "ValueError",
			message: "the mount of \"/var/run\" at \"/x\" shows the sandbox a container engine's socket"},
		{name: "an engine's socket that is let pass", mount: `{"type": "bind", "source": "/var", "target": "/x"}`, allowed: true,
			want: sandbox.Mount{Source: "/var", Target: "/x"}},
		{name: "a volume in an engine's place", mount: `{"type": "volume", "source": "cache", "target": "/run"}`, volumes: true, exception: "ValueError",
			message: "the mount of \"cache\" at \"/run\" shows"},
		{name: "image", mount: `{"type": "image", "source": "i", "target": "/x"}`, volumes: true, exception: "ValueError",
			message: "mount of type 'image' on /x: environment fake mounts directories of the host and volumes only (types 'bind' and 'volume')"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			can := sandbox.Capabilities{Mounted: true, Build: true, Volumes: c.volumes}
			var asked []sandbox.Mount
			b := newBench(t, goodTask(), fake.Config{Capabilities: &can, Rules: []fake.Rule{granted}})
			v, err := value.Decode([]byte(c.mount))
			if err != nil {
				t.Fatal(err)
			}
			b.AllowEngineSocket = c.allowed
			b.cfg.Environment.Mounts = []*value.Object{v.(*value.Object)}
			res := b.run(t)
			if exceptionType(res) != c.exception || c.message != "" && !strings.Contains(res.ExceptionInfo.Message, c.message) {
				t.Errorf("exception %+v, want %q with %q", res.ExceptionInfo, c.exception, c.message)
			}
			opened := false
			for _, call := range b.backend.Calls() {
				if call.Op == fake.OpCreate {
					asked = call.Spec.Mounts
				}
				opened = opened || slices.Equal(call.Command.Argv, []string{"chmod", "777", "--", "/x"})
			}
			if c.exception == "" && (len(asked) != 4 || asked[3] != c.want || opened != c.want.Volume) {
				t.Errorf("mounts %+v, opened %v; want %+v last", asked, opened, c.want)
			}
		})
	}
}
