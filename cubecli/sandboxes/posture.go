package sandboxes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
)

// Posture is what a command in a sandbox can do, as the kernel tells it there. A
// kernel that does not say leaves the zero value.
type Posture struct {
	// Capabilities is how many a command of root has or can gain.
	Capabilities int `json:"capabilities"`
	// NoNewPrivileges: set-uid programs give nothing.
	NoNewPrivileges bool `json:"no_new_privileges"`
	// Seccomp: system calls are filtered.
	Seccomp bool `json:"seccomp"`
	// ReadOnlyRoot: what is no mount cannot be written.
	ReadOnlyRoot bool `json:"read_only_root"`
	// GuardedTmp: "/tmp" shows neither set-uid programs nor devices.
	GuardedTmp bool `json:"guarded_tmp"`
	// PIDs is how many processes there may be; 0 is no limit, or not known.
	PIDs int64 `json:"pids,omitempty"`
	// Network: there are interfaces besides loopback where none is asked for.
	Network bool `json:"network"`
}

// String says it in a line.
func (p Posture) String() string {
	said := []string{console.Count(p.Capabilities, "capability")}
	for _, part := range []struct {
		is   bool
		text string
	}{
		{p.NoNewPrivileges, "no new privileges"},
		{p.Seccomp, "filtered system calls"},
		{p.ReadOnlyRoot, "read-only root"},
		{p.GuardedTmp, "/tmp without set-uid and devices"},
		{p.PIDs > 0, console.Count(int(p.PIDs), "process")},
		{!p.Network, "no network unless asked for"},
	} {
		if part.is {
			said = append(said, part.text)
		}
	}
	return strings.Join(said, ", ")
}

// Postures are those of one environment's or runtime's sandboxes.
type Postures struct {
	// Default is that of a sandbox of which nothing is asked.
	Default Posture `json:"default"`
	// Hardened is that of one with sandbox.Spec's Hardened; nil where it is refused.
	Hardened *Posture `json:"hardened,omitempty"`
}

// readPosture prints what a command can do: its status, its mounts, the limit of
// processes, the network's interfaces.
const readPosture = `cat /proc/self/status; echo @; cat /proc/self/mountinfo; echo @; ` +
	`cat /sys/fs/cgroup/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids/pids.max 2>/dev/null; echo @; cat /proc/net/dev`

// postureLimit bounds one sandbox that is measured.
const postureLimit = time.Minute

var errNoPosture = errors.New("what a command can do cannot be read in the sandbox")

// posturesOf makes a sandbox of a backend and one that is hardened, and measures
// them. img is what they are made of.
func posturesOf(ctx context.Context, b sandbox.Backend, img sandbox.Image) (p Postures, err error) {
	if p.Default, err = postureOf(ctx, b, sandbox.Spec{Image: img}); err != nil || !b.Capabilities().Hardened {
		return p, err
	}
	hardened, err := postureOf(ctx, b, sandbox.Spec{Image: img, Hardened: true})
	p.Hardened = &hardened
	return p, err
}

func postureOf(ctx context.Context, b sandbox.Backend, spec sandbox.Spec) (p Posture, err error) {
	ctx, cancel := context.WithTimeout(ctx, postureLimit)
	defer cancel()
	self, err := procid.Self()
	if err != nil {
		return p, err
	}
	spec.Name, spec.Labels = "doctor", sandbox.Labels{Job: "doctor", Trial: "doctor", Owner: self}
	sb, err := b.Create(ctx, spec)
	if err != nil {
		return p, err
	}
	p, err = measure(ctx, sb)
	if p.PIDs == 0 && b.Capabilities().PIDsLimit { // it holds, but the sandbox does not show it
		p.PIDs = sandbox.DefaultPIDs
		if spec.Hardened {
			p.PIDs = sandbox.HardenedPIDs
		}
	}
	return p, errors.Join(err, sb.Destroy(context.WithoutCancel(ctx)))
}

// measure reads what a command of root in a sandbox can do.
func measure(ctx context.Context, sb sandbox.Sandbox) (p Posture, err error) {
	var out bytes.Buffer
	status, err := sb.Exec(ctx, sandbox.Command{Argv: []string{"sh", "-c", readPosture}, User: "0:0", Dir: "/", Stdout: &out, Stderr: &bytes.Buffer{}})
	if err != nil {
		return p, err
	}
	parts := strings.Split(out.String(), "@\n")
	if status.Code != 0 || len(parts) != 4 {
		return p, fmt.Errorf("%w: exit code %d", errNoPosture, status.Code)
	}
	p.readStatus(parts[0])
	p.readMounts(parts[1])
	p.PIDs, _ = strconv.ParseInt(strings.TrimSpace(parts[2]), 10, 64) // "max" is no limit
	for line := range strings.Lines(parts[3]) {
		name, _, isInterface := strings.Cut(strings.TrimSpace(line), ":")
		p.Network = p.Network || isInterface && name != "lo"
	}
	return p, nil
}

func (p *Posture) readStatus(text string) {
	var has, can uint64
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch name {
		case "CapEff":
			has, _ = strconv.ParseUint(value, 16, 64)
		case "CapBnd":
			can, _ = strconv.ParseUint(value, 16, 64)
		case "NoNewPrivs":
			p.NoNewPrivileges = value == "1"
		case "Seccomp":
			p.Seccomp = value == "2"
		}
	}
	p.Capabilities = bits.OnesCount64(has | can)
}

func (p *Posture) readMounts(text string) {
	// gVisor's kernel shows nodev nowhere: devices there are its own.
	showsDevices := strings.Contains(text, "nodev")
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		options := strings.Split(f[5], ",")
		switch f[4] { // of several at one place the last counts
		case "/":
			p.ReadOnlyRoot = slices.Contains(options, "ro")
		case "/tmp":
			p.GuardedTmp = slices.Contains(options, "nosuid") && (!showsDevices || slices.Contains(options, "nodev"))
		}
	}
}
