package docker

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/compose"
	"github.com/proctor-run/proctor/sandbox/guest"
	"github.com/proctor-run/proctor/sandbox/internal/entrypoint"
	"github.com/proctor-run/proctor/sandbox/internal/hardening"
)

// Where the guest program lies in a container. It is the container's first
// process: signals from inside do not reach it, and nobody there may look into
// it without CAP_SYS_PTRACE, which engines do not give.
const (
	guestDir  = "/.proctor"
	guestName = sandbox.HelperName
	guestPath = guestDir + "/" + guestName
)

// way says how a container gets its supervisor.
type way int

const (
	// byMount: the program's own file, mounted read-only.
	byMount way = iota
	// byCopy: a copy in the container, which continues in sealed memory, so
	// that the fate of the file does not matter.
	byCopy
	// byEngine: none; the engine alone supervises.
	byEngine
)

// guestError says that the supervisor could not be started, as opposed to the
// container.
type guestError struct {
	way way
	err error
}

func (e *guestError) Error() string { return "starting the supervisor: " + e.err.Error() }
func (e *guestError) Unwrap() error { return e.err }

// supervisor is what is known of the supervisor on an engine.
type supervisor struct {
	known   bool // the rest is
	program string
	refused [byEngine]error // by way: why it does not work here
	worked  bool            // a container had it
}

// ways lists how a container can be supervised here, the best first. The error
// is why the engine alone is the first, or would be the next, nil where a
// supervisor has worked already.
func (b *Backend) ways(ctx context.Context) (ways []way, program string, why error) {
	b.mu.Lock()
	s := b.supervisor
	b.mu.Unlock()
	if !s.known {
		program, err := b.findGuest(ctx)
		if ctx.Err() != nil {
			return nil, "", context.Cause(ctx)
		}
		s.known, s.program = true, program
		s.refused[byMount], s.refused[byCopy] = err, err
		if err == nil && !b.local {
			s.refused[byMount] = errors.New("the engine does not see this machine's files")
		}
		b.mu.Lock()
		b.supervisor = s
		b.mu.Unlock()
	}
	for _, w := range []way{byMount, byCopy} {
		if s.refused[w] == nil {
			ways = append(ways, w)
		}
	}
	if len(ways) == 0 {
		why = s.refused[byCopy]
	}
	return append(ways, byEngine), s.program, why
}

// worked notes that a container was started.
func (b *Backend) worked(w way) {
	if w != byEngine {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.supervisor.worked = true
	}
}

// fallsBack notes that a container could not get its supervisor, and reports
// whether another way is to be tried. Where a supervisor has worked before, its
// failure is one of the container, and no reason to promise less.
func (b *Backend) fallsBack(failed *guestError) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.supervisor.worked {
		return false
	}
	b.supervisor.refused[failed.way] = failed.err
	return true
}

// Supervision says what supervises the commands of containers on this engine,
// one of the sandbox.Supervision constants, and why it is not the better one. It
// tries it with an image that the engine has; without any it says what is to be
// expected. Single containers can differ, see [Container.Supervision].
func (b *Backend) Supervision(ctx context.Context, labels sandbox.Labels) (kind string, why error) {
	images, err := b.LocalImages(ctx)
	if err == nil && len(images) > 0 {
		if err := b.probe(ctx, sandbox.Spec{Name: "supervisor", Labels: labels}, compose.Image{Ref: images[0]}); err != nil {
			return "", fmt.Errorf("trying the supervisor in image %s: %w", images[0], err)
		}
	}
	ways, _, why := b.ways(ctx)
	switch {
	case len(ways) == 0:
		return "", why
	case ways[0] == byEngine:
		return sandbox.SupervisionEngine, why
	}
	return sandbox.SupervisionGuest, nil
}

var errNoGuest = errors.New("there is no supervisor program for the engine's containers here")

// findGuest finds the guest program for the machine that the engine runs on.
func (b *Backend) findGuest(ctx context.Context) (string, error) {
	if b.guest == nil {
		return "", errNoGuest
	}
	v, err := b.api.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return "", fmt.Errorf("asking the engine for its machine: %w", err)
	}
	program, err := b.guest(ctx, v.Arch)
	if err != nil {
		return "", err
	}
	if err := runsOn(program, v.Arch); err != nil {
		return "", fmt.Errorf("%w: %s: %w", errNoGuest, program, err)
	}
	return program, nil
}

// machines are the processors of ELF files by Go's names.
var machines = map[string]elf.Machine{
	"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "386": elf.EM_386, "arm": elf.EM_ARM,
	"ppc64le": elf.EM_PPC64, "s390x": elf.EM_S390, "riscv64": elf.EM_RISCV, "loong64": elf.EM_LOONGARCH,
}

// runsOn returns an error unless a program is a Linux one for a processor, and
// needs no shared libraries.
func runsOn(program, arch string) error {
	f, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("it is no Linux program: %w", err)
	}
	defer func() { _ = f.Close() }()
	if want := machines[arch]; f.Machine != want {
		return fmt.Errorf("it is for %v, the engine for %s", f.Machine, arch)
	}
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return errors.New("it needs shared libraries")
	}
	return nil
}

// service is what a container would run without the supervisor: the image's or
// the compose service's own entrypoint and command. It runs beside it.
type service struct {
	argv      []string // empty for nothing
	user, dir string
	stdin     bool // standard input stays open
}

// supervised makes a container's first process the supervisor, and returns
// what that was.
func supervised(o *client.ContainerCreateOptions, img compose.Image, w way, program string) service {
	config, host := o.Config, o.HostConfig
	s := service{
		user: cmp.Or(config.User, img.User), dir: cmp.Or(config.WorkingDir, img.Workdir),
		stdin: config.OpenStdin || config.Tty,
	}
	// The engine's rule: an entrypoint of the container's own also replaces
	// the image's command.
	first, command := config.Entrypoint, config.Cmd
	if len(first) == 0 {
		first = img.Entrypoint
		if len(command) == 0 {
			command = img.Cmd
		}
	}
	s.argv = entrypoint.Instead(slices.Concat(first, command), guestPath)
	config.Entrypoint, config.Cmd = []string{guestPath}, nil
	if w == byCopy {
		config.Cmd = []string{guest.CopiedMode}
	}
	config.User = "0:0"
	config.Tty = false
	config.OpenStdin, config.StdinOnce = true, true
	config.AttachStdin, config.AttachStdout, config.AttachStderr = true, true, true
	host.Init = new(false)
	// What passes over the connection is nothing to be kept.
	host.LogConfig = container.LogConfig{Type: "none"}
	if w == byMount {
		host.Mounts = append(host.Mounts, mount.Mount{
			Type: mount.TypeBind, Source: program, Target: guestPath, ReadOnly: true,
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate},
		})
	}
	return s
}

// unsupervisable says why a container as it is asked for cannot have the
// supervisor as its first process; nil when it can.
func unsupervisable(host *container.HostConfig, w way) error {
	if host.ReadonlyRootfs && w == byCopy {
		return errors.New("its files are read-only")
	}
	if !host.PidMode.IsPrivate() {
		// Only a namespace's first process can prove that nothing is left.
		return errors.New("it shares the processes of others")
	}
	if host.Privileged {
		return nil
	}
	named := func(list []string, name string) bool {
		return slices.ContainsFunc(list, func(c string) bool {
			return strings.EqualFold(strings.TrimPrefix(strings.ToUpper(c), "CAP_"), name)
		})
	}
	for _, c := range hardening.Supervisor() {
		dropped := named(host.CapDrop, c) || named(host.CapDrop, "ALL") && !named(host.CapAdd, c) && !named(host.CapAdd, "ALL")
		if dropped {
			return fmt.Errorf("it has no capability %s", c)
		}
	}
	return nil
}

// exposed says why what runs in a container can reach its supervisor; empty
// when it cannot.
func exposed(host *container.HostConfig) string {
	if host.Privileged {
		return "is privileged"
	}
	for _, c := range host.CapAdd {
		switch name := strings.TrimPrefix(strings.ToUpper(c), "CAP_"); name {
		case "ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_PTRACE", "SYS_RAWIO", "PERFMON", "BPF", "CHECKPOINT_RESTORE":
			return "has the capability " + name
		}
	}
	return ""
}

// putGuest copies the guest program into a container that does not run.
func (b *Backend) putGuest(ctx context.Context, id, program string) error {
	f, err := os.Open(program)
	if err != nil {
		return fmt.Errorf("opening the supervisor program: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("opening the supervisor program: %w", err)
	}
	var head bytes.Buffer
	w := tar.NewWriter(&head)
	for _, h := range []*tar.Header{
		{Typeflag: tar.TypeDir, Name: guestDir[1:] + "/", Mode: 0o755},
		{Typeflag: tar.TypeReg, Name: guestPath[1:], Mode: 0o755, Size: info.Size()},
	} {
		if err := w.WriteHeader(h); err != nil {
			return fmt.Errorf("packing the supervisor program: %w", err)
		}
	}
	// The rest of an archive: padding to whole blocks, and two empty ones.
	tail := make([]byte, (512-info.Size()%512)%512+1024)
	_, err = b.api.CopyToContainer(ctx, id, client.CopyToContainerOptions{
		DestinationPath: "/",
		Content:         io.MultiReader(&head, io.LimitReader(f, info.Size()), bytes.NewReader(tail)),
	})
	if err != nil {
		return fmt.Errorf("copying the supervisor program into the container: %w", err)
	}
	return nil
}
