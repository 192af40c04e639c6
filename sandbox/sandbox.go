// Package sandbox is the contract between proctor and whatever isolates the
// commands of a trial: a container engine, an OCI runtime, a fake.
//
// A [Backend] creates sandboxes; a [Sandbox] runs commands and moves files.
// The life of a sandbox, in order:
//
//  1. Create is called once. When it returns without error the sandbox is
//     running and accepts every other call. When it returns an error nothing
//     of the sandbox is left, or it will be found by [Collector.Collect].
//  2. Exec, Upload, Download, Mark and KillTree may be called any number of
//     times, also concurrently.
//  3. Destroy ends it. It may be called at any time, repeatedly and
//     concurrently, also while other calls are under way: those return
//     [ErrDestroyed] or an error of their own. Destroy waits out no stop
//     timeout: what runs is killed.
//
// A command that exits non-zero is a result, not an error. An error says that
// the sandbox could not do its work. Package sandboxtest holds the suite that
// every backend passes.
//
// The package knows nothing of tasks, agents or verifiers.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/proctor-run/proctor/procid"
)

// Errors that callers branch on. Backends wrap them with what they concern.
var (
	// ErrDestroyed is returned by every call on a sandbox after Destroy.
	ErrDestroyed = errors.New("sandbox is destroyed")
	// ErrUnsupported marks a Spec that asks for what the backend cannot do.
	ErrUnsupported = errors.New("not supported by this sandbox backend")
	// ErrImageNotFound marks an image reference that no source has.
	ErrImageNotFound = errors.New("image not found")
	// ErrNotExist is returned by Download for a source that is not there.
	ErrNotExist = errors.New("no such file or directory in the sandbox")
	// ErrUnavailable marks a backend that does not answer at all (no socket,
	// no kernel support); the message says what is missing and what to do.
	ErrUnavailable = errors.New("sandbox backend is not available")
)

// BuildError reports that an image could not be built. Log holds the end of
// the build's output, bounded.
type BuildError struct {
	Image string
	Log   string
	Err   error
}

func (e *BuildError) Error() string {
	if e.Log == "" {
		return fmt.Sprintf("building image %q: %v", e.Image, e.Err)
	}
	return fmt.Sprintf("building image %q: %v\n%s", e.Image, e.Err, e.Log)
}

func (e *BuildError) Unwrap() error { return e.Err }

// Names of the backends that come with proctor.
const (
	BackendDocker  = "docker"  // a container engine
	BackendSandbox = "sandbox" // an OCI runtime without a daemon
	BackendHost    = "host"    // the same, on the host's own root
)

// Backend creates sandboxes of one kind. Its methods may be called
// concurrently.
type Backend interface {
	// Name is the word that selects the backend, such as BackendDocker. What
	// a backend can do is in its Capabilities, not in its name.
	Name() string
	// Capabilities says what Specs the backend accepts.
	Capabilities() Capabilities
	// Check reports whether sandboxes can be created here at all. A nil
	// error is a promise for this machine, not for one image. Errors wrap
	// ErrUnavailable and tell the fix.
	Check(ctx context.Context) error
	// Create builds or fetches the image, creates the sandbox and starts it.
	// It obeys ctx; a Spec beyond the Capabilities gives ErrUnsupported
	// before anything is created.
	Create(ctx context.Context, spec Spec) (Sandbox, error)
}

// RuntimeOf names what runs the sandboxes of a backend where there is a choice of
// that, which its method Runtime says; empty for others.
func RuntimeOf(b Backend) string {
	if r, ok := b.(interface{ Runtime() string }); ok {
		return r.Runtime()
	}
	return ""
}

// Collector is the ability to find and remove what killed owners left.
type Collector interface {
	// Collect removes every sandbox, mount, network and directory of the
	// backend whose owner keep does not claim, and returns one line for each
	// thing removed. It never touches what keep claims.
	Collect(ctx context.Context, keep func(procid.ID) bool) ([]string, error)
}

// Surveyor is the ability to tell what [Collector.Collect] would remove.
type Surveyor interface {
	// Survey returns the lines that Collect would, and removes nothing.
	Survey(ctx context.Context, keep func(procid.ID) bool) ([]string, error)
}

// Capabilities of a backend. The zero value promises nothing.
type Capabilities struct {
	// Mounted: bind mounts show the host's own files, so what a command
	// writes below a mount is on the host without a Download.
	Mounted bool
	// OwnRoot: the root of a sandbox shows the host's own files. Spec.Image is
	// ignored: nothing is pulled or built. What commands write to the root is
	// not seen by the host.
	OwnRoot bool
	// Build: images can be built from a Dockerfile.
	Build bool
	// Compose: the backend can run compose projects.
	Compose bool
	// NoNetwork: network mode none is enforced.
	NoNetwork bool
	// Allowlist: network mode allowlist is enforced.
	Allowlist bool
	// SwitchNetwork: sandboxes created with Network.Switchable are
	// NetworkSwitchers.
	SwitchNetwork bool
	// Volumes: mounts may be volumes.
	Volumes bool
	// GuardedMounts: Mount.Guarded is held.
	GuardedMounts bool
	// CPULimit, MemoryLimit, StorageLimit and PIDsLimit: the limits of Resources are
	// enforced.
	CPULimit, MemoryLimit, StorageLimit, PIDsLimit bool
	// Keep: Spec.Keep is carried out, and sandboxes are Stoppers.
	Keep bool
	// GPUs and TPUs can be given to a sandbox.
	GPUs, TPUs bool
	// Hardened: Spec.Hardened is carried out.
	Hardened bool
	// Windows images can be run.
	Windows bool
}

// Labels are put on everything external that belongs to a sandbox.
type Labels struct {
	Job   string // job id
	Trial string // trial name
	Owner procid.ID
}

// Spec describes a sandbox.
type Spec struct {
	// Name is unique among the caller's running sandboxes (a trial name).
	// Backends derive legal names of their own from it.
	Name   string
	Labels Labels

	// Image says what the root file system is. Backend "host" ignores it.
	Image Image

	// Mounts in order. Targets are created when missing.
	Mounts []Mount
	// Env is set for every command, below the command's own Env.
	Env []string
	// User for commands that name none: a name, a uid, "name:group" or
	// "uid:gid"; empty means the image's.
	User string
	// Workdir for commands that name none; empty means the image's, and
	// where the image has none, "/".
	Workdir string

	Resources Resources
	Network   Network

	// Hardened leaves commands as little as their work can be done with, on every
	// backend the same (outcome mapping, section 13.1): the root is read-only, no
	// command has or can gain a capability, also as root and through set-uid
	// programs, there are HardenedPIDs processes at most, and "/tmp" is empty,
	// in memory, and shows neither set-uid programs nor devices. Writable besides
	// are the mounts, Workdir, and what HardenedWritable names, which begin as the
	// image has them. Uploads go to writable places only.
	Hardened bool

	// Keep says that the sandbox is to be left for people to look at, see Stopper:
	// no Collect removes it, unless it is told to remove such too, also when its
	// owner was killed.
	Keep bool

	// Compose, when set, makes the sandbox the service "main" of a compose
	// project; Image is what main is made of where the files do not say.
	Compose *Compose

	// Progress, when set, receives what Create is doing ("pulling debian:12",
	// "building"), a few times at most per second, from one goroutine at a time.
	Progress func(message string)
	// Warn, when set, receives during Create what a person should know of the
	// sandbox (a compose service is privileged), from one goroutine at a time.
	Warn func(message string)
}

// Image is either a reference or a build, or both: then the reference wins
// unless ForceBuild is set.
type Image struct {
	// Ref names an image: a registry reference, or for backend "sandbox" also
	// "oci:DIR[:TAG]" (OCI layout) and "docker-archive:FILE".
	Ref string
	// Build context; nil means there is nothing to build.
	Build *Build
	// ForceBuild builds even when Ref is set or a built image can be reused.
	ForceBuild bool
	// KeepImage leaves a built image for the next run (it is reused by content).
	KeepImage bool
}

// Build is a Dockerfile with its context.
type Build struct {
	// ContextDir is a directory on the host that holds the Dockerfile.
	ContextDir string
	// Name is the task's short name, for image names and messages.
	Name string
	// Timeout bounds the build alone; 0 means only the context bounds it.
	Timeout time.Duration
}

// Compose is a compose project around a sandbox. The files are later merged on
// top of earlier ones, with what the Spec says of service main (image, mounts,
// resources, network) around them as in the Harbor task format, section 5.4.
type Compose struct {
	Project string   // name; a legal one for compose
	Dir     string   // absolute; relative paths of the files start here
	Files   []string // absolute, on the host
	Env     []string // KEY=VALUE for interpolation, later entries win
	// Hints say for variables that Env may lack what would give them a value: errors
	// of files that use them without one end with it.
	Hints map[string]string
}

// Mount is a bind mount of a host directory or file, or a volume.
type Mount struct {
	Source   string // absolute path on the host
	Target   string // absolute path in the sandbox
	ReadOnly bool
	// Guarded: no set-uid program and no device works below Target, where a backend
	// can see to that. What the mount's owner finds there later is the same.
	Guarded bool
	// Volume: Source is the name of a volume of the backend, which stays; an
	// empty one makes a volume that goes with the sandbox.
	Volume bool
}

// Resources bound a sandbox. Zero means unlimited.
type Resources struct {
	CPUs     float64
	MemoryMB int64
	// StorageMB is what may be written to the root file system, in MiB. Where no file
	// system sees to that, what the trial has mounted for its logs counts too, it is looked
	// at from time to time, and when it is more all commands are ended.
	StorageMB int64
	GPUs      int
	// PIDs is how many processes and threads there may be at once; 0 is
	// DefaultPIDs where a backend can enforce it, and less means no limit.
	PIDs int64
}

// DefaultPIDs is how many processes and threads a sandbox may have if nothing
// else is said: many more than builds and tests use, and a fraction of what a
// machine can have.
const DefaultPIDs = 4096

// HardenedPIDs is how many processes and threads a sandbox with Spec.Hardened may
// have if less is not asked for.
const HardenedPIDs = 512

// HardenedWritable are the directories that can be written with Spec.Hardened,
// besides its Workdir, "/tmp" and its mounts: where trials put files, and homes.
func HardenedWritable() []string {
	return []string{"/logs", "/tests", "/solution", "/proctor", "/installed-agent", "/workspace/agent", "/harbor", "/root", "/home"}
}

// NetworkMode says what a sandbox can reach.
type NetworkMode string

// The network modes, spelled as in task.toml.
const (
	NetworkPublic    NetworkMode = "public"
	NetworkNone      NetworkMode = "no-network"
	NetworkAllowlist NetworkMode = "allowlist"
)

// Network is a sandbox's network policy. The zero value is public.
type Network struct {
	Mode  NetworkMode
	Hosts []string // for allowlist: host names, "*.example.org" for subdomains
	// Switchable: the policy will be changed while the sandbox runs.
	Switchable bool
	// Log receives one JSON object per line for each connection that the
	// egress proxy was asked for; nil for none. Writes are not concurrent.
	Log io.Writer
}

// Command is one thing to run.
type Command struct {
	// Argv is run as it is when not empty; otherwise Shell is run as
	// bash -c Shell.
	Argv  []string
	Shell string

	Env   []string // KEY=VALUE, later entries win, above Spec.Env
	Dir   string   // working directory; empty means Spec.Workdir
	User  string   // as Spec.User; empty means Spec.User
	Stdin io.Reader

	// Stdout and Stderr receive the output as it comes. When Stderr is nil,
	// standard error is merged into Stdout, in order. When both are nil output
	// is discarded. A sink that returns an error is not written to again, and
	// the command continues.
	Stdout, Stderr io.Writer

	// Timeout ends the command like the end of the context does; 0 means none.
	Timeout time.Duration
	// Grace is how long the process tree has between SIGTERM and SIGKILL
	// when it is ended; 0 means DefaultGrace.
	Grace time.Duration
}

// DefaultGrace between SIGTERM and SIGKILL.
const DefaultGrace = 2 * time.Second

// ExitStatus is how a command ended.
type ExitStatus struct {
	// Code as a shell reports it: 128+n after signal n, 126 for what cannot
	// be run (also an unknown user or a missing directory), 127 for what is
	// not found.
	Code int
	// TimedOut: Command.Timeout passed and the process tree was killed.
	TimedOut bool
	// NotStarted: nothing of the command ran, because there is no such user,
	// directory or program. Why is the command's output, Code 126 or 127.
	NotStarted bool
}

// Mark is a point in the life of a sandbox's processes, see Sandbox.Mark.
type Mark string

// Sandbox is a running sandbox.
//
// All paths are absolute and inside the sandbox. Uploads and downloads act as
// root and never follow a link out of the sandbox's own root.
type Sandbox interface {
	// ID is how the backend knows the sandbox (a container id).
	ID() string

	// Exec runs a command and returns when the command itself has ended.
	// Processes that it leaves running stay; what they write later is read
	// and dropped, so that they are not killed by a closed pipe.
	//
	// When ctx ends or the timeout passes, everything that was born in the
	// sandbox since the command started, and that belongs to no other Exec
	// under way, is sent SIGTERM, after Grace SIGKILL, and Exec returns only
	// when none of it is left: daemons and double forks included. What a
	// process forks that was there before stays with that process. A passed
	// timeout then is a result with TimedOut; an ended ctx is
	// context.Cause(ctx), wrapped.
	Exec(ctx context.Context, cmd Command) (ExitStatus, error)

	// Mark notes which processes exist now, for KillTree.
	Mark(ctx context.Context) (Mark, error)
	// KillTree ends everything born since the mark (SIGTERM, after grace
	// SIGKILL), but for what processes that are older than the mark have
	// forked, and returns when it is proven gone. An error means that it
	// could not be proven.
	KillTree(ctx context.Context, since Mark, grace time.Duration) error

	// Upload unpacks a tar stream below dir, which is created when missing.
	// Modes and symlinks are kept; owners are kept as numbers.
	Upload(ctx context.Context, dir string, tar io.Reader) error
	// Download writes path as a tar stream: a directory's contents with names
	// relative to it, or a file as one entry with its base name. Links are
	// written as links. A missing path gives ErrNotExist before any output.
	Download(ctx context.Context, path string, tar io.Writer) error

	// Destroy removes the sandbox and all that was made for it. It is
	// idempotent, safe at any time, and bounded by ctx.
	Destroy(ctx context.Context) error
}

// As finds an ability of a sandbox: [Resetter], [Snapshotter], [NetworkSwitcher],
// [Owner], [Stopper], [Restarter], [ProcessLister], [Supervised] or [Imaged], or the Listener of package
// egress: programs inside reach a server of this program.
// A wrapper has a method Unwrap that returns the sandbox below; As looks at
// the outermost first. A wrapper that takes part in an ability implements it
// itself, and only where As finds the ability below it.
func As[Ability any](sb Sandbox) (ability Ability, ok bool) {
	for sb != nil {
		if ability, ok = sb.(Ability); ok {
			return ability, true
		}
		wrapper, wraps := sb.(interface{ Unwrap() Sandbox })
		if !wraps {
			break
		}
		sb = wrapper.Unwrap()
	}
	return ability, false
}

// Resetter is the ability to bring a sandbox back to how Create left it, much
// cheaper than a new one: what was written is gone and every process has ended,
// the one of an Exec under way too, whose call returns an error. Marks from
// before mean nothing any more. Mounts stay, and what they show is not touched.
// After an error the sandbox can only be destroyed.
type Resetter interface {
	Reset(ctx context.Context) error
}

// Snapshotter is the ability to keep the files of a sandbox as they are now.
type Snapshotter interface {
	// CanSnapshot says why Snapshot would be ErrUnsupported, nil where it would not.
	CanSnapshot() error
	// Snapshot ends every process, as Reset does, so that the files stand still,
	// and keeps all of them but what is below mounts. The sandbox continues with
	// the same files; Reset still goes back to how Create left it. The name is
	// for people. ErrUnsupported says that this sandbox cannot, and nothing was done;
	// after any other error it can only be destroyed.
	Snapshot(ctx context.Context, name string) (Snapshot, error)
}

// Snapshot is the root file system of a sandbox at one moment. Nothing changes
// it, and it outlives its sandbox. Its methods may be called concurrently.
type Snapshot interface {
	// Name is the one that it was given.
	Name() string
	// Size is how many bytes of this machine's disk go to what was written until then, not
	// counting the image and the snapshots that it began with.
	Size() int64
	// Fork creates a sandbox that begins with the snapshot's files, copy-on-write:
	// what it writes, no other sandbox sees. Of the Spec everything counts but
	// Image: the image's user, working directory and variables are those of the
	// first sandbox. A fork has the abilities of the sandbox that it came from, and
	// Reset brings it back to the snapshot.
	Fork(ctx context.Context, spec Spec) (Sandbox, error)
	// Release gives the snapshot up. No Fork is possible afterwards; its storage
	// goes with the last sandbox that uses it. It may be called repeatedly.
	Release(ctx context.Context) error
}

// Fork makes a sandbox for each Spec from the files of sb as they are now. Where
// sb is no [Snapshotter] the error is ErrUnsupported; after any error none of the
// new sandboxes is left.
func Fork(ctx context.Context, sb Sandbox, specs ...Spec) (_ []Sandbox, err error) {
	s, ok := As[Snapshotter](sb)
	if !ok {
		return nil, fmt.Errorf("forking sandbox %s: %w", sb.ID(), ErrUnsupported)
	}
	snapshot, err := s.Snapshot(ctx, "fork")
	if err != nil {
		return nil, fmt.Errorf("forking sandbox %s: %w", sb.ID(), err)
	}
	made := make([]Sandbox, 0, len(specs))
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
		defer cancel()
		if releaseErr := snapshot.Release(end); err == nil {
			err = releaseErr
		}
		if err == nil {
			return
		}
		for _, sb := range made {
			err = errors.Join(err, sb.Destroy(end))
		}
	}()
	for _, spec := range specs {
		forked, err := snapshot.Fork(ctx, spec)
		if err != nil {
			return nil, err
		}
		made = append(made, forked)
	}
	return made, nil
}

// Preparer is the ability of a backend to make sandboxes before it is known what
// for, so that they are ready when they are wanted. Package pool keeps such.
type Preparer interface {
	// Prepare makes everything of a sandbox that does not depend on whom it is
	// for. Of the Spec only Image, Resources and Network count. ErrUnsupported
	// says that sandboxes of this kind cannot be prepared, but can be created.
	Prepare(ctx context.Context, spec Spec) (Prepared, error)
}

// Prepared is a sandbox in which nothing has happened. It carries the owner of
// its process until it is taken.
type Prepared interface {
	// Take makes it the sandbox of a Spec with the same Image, Resources and
	// Network, as Create would have made it. It is to be called once; ErrUnsupported
	// says that this Spec needs a sandbox that is created for it. After an error
	// nothing is left, and after success Destroy does nothing.
	Take(ctx context.Context, spec Spec) (Sandbox, error)
	// Memory is how many bytes its processes take now; 0 where that is unknown.
	Memory() int64
	// Destroy removes it. It is idempotent and bounded by ctx.
	Destroy(ctx context.Context) error
}

// undoLimit bounds the removal of sandboxes that are not wanted after all.
const undoLimit = time.Minute

// NetworkSwitcher is the ability to change what a running sandbox can reach.
// Connections that the new policy does not allow are closed.
type NetworkSwitcher interface {
	SetNetwork(ctx context.Context, mode NetworkMode, hosts []string) error
}

// Owner is the ability to make the user that this program runs as the owner of what
// lies below a directory of the sandbox, which is a mount from this machine: of what
// users of the sandbox wrote there, that user can neither read nor remove everything.
// Links are not followed. Where the user is root nothing is done, because root can do
// it from outside. A directory that is not there is no error.
type Owner interface {
	Own(ctx context.Context, dir string) error
}

// ownLimit bounds a change of owners: a million files take a few seconds.
const ownLimit = 30 * time.Second

// Own makes this program's user the owner of what lies below a mounted directory,
// where the sandbox is an [Owner], within a bound and also when ctx has ended. What it
// could not change is found by whoever reads it.
func Own(ctx context.Context, sb Sandbox, dir string) {
	owner, ok := As[Owner](sb)
	if !ok {
		return
	}
	octx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ownLimit)
	defer cancel()
	_ = owner.Own(octx, dir)
}

// Stopper is the ability to stop a sandbox and leave it for inspection,
// instead of Destroy. Hint says how to get in again.
type Stopper interface {
	Stop(ctx context.Context) (hint string, err error)
}

// Restarter is the ability to end everything that runs in a sandbox, however old it is,
// without a loss of files.
type Restarter interface {
	// EndAll ends every process but the supervisor (SIGTERM, after grace SIGKILL), those
	// too that are older than any mark and what they have started, and returns when it is
	// proven that none is left. An Exec under way returns as one that was killed, and
	// Listeners of package egress end; the network stays what it is. What ran beside the
	// commands, the image's entrypoint or the own command of a compose service, is not
	// started again. Marks from before mean nothing any more. ErrUnsupported says that this
	// sandbox cannot, and nothing was done.
	EndAll(ctx context.Context, grace time.Duration) error
	// StartServices starts after EndAll what ran beside the commands, as it was started
	// first, from the files that are there now. Without such it does nothing.
	StartServices(ctx context.Context) error
}

// HelperName is the name of the processes that backends run in a sandbox for themselves,
// such as those that carry connections through.
const HelperName = "proctor-guest"

// Process is one process of a sandbox.
type Process struct {
	PID, PPID int // as they are numbered inside
	// Start is in clock ticks since the machine's start. With the PID it names
	// one process for as long as the sandbox runs.
	Start uint64
	// Dead: it has ended and waits to be reaped.
	Dead bool
	// Name is what the process calls itself; it may hold anything.
	Name string
}

// ProcessLister is the ability to list the processes of a sandbox, the first
// one included, by means that nothing in the sandbox can change.
type ProcessLister interface {
	Processes(ctx context.Context) ([]Process, error)
}

// What supervises the commands of a sandbox, see Supervised.
const (
	// SupervisionGuest: a supervisor inside that what runs there cannot reach.
	// What it ends is proven gone.
	SupervisionGuest = "guest"
	// SupervisionEngine: a container engine alone. Ending anything ends
	// everything that runs in the sandbox; nothing is ended by itself.
	SupervisionEngine = "engine"
)

// Supervised is the ability to say what supervises the commands of a sandbox:
// one of the Supervision constants.
type Supervised interface {
	Supervision() string
}

// Imaged is the ability to say which image a sandbox was made of.
type Imaged interface {
	// ImageDigest is the digest of the image's configuration, "sha256:…", which pins its
	// layers too; empty where there is no image.
	ImageDigest() string
}

// LostError says that a sandbox has ended although nobody destroyed it: it was
// stopped or removed from outside, ran out of memory, or the connection with it
// broke. Nothing can be said of what was under way.
type LostError struct {
	// Reason says what is known of it.
	Reason string
}

func (e *LostError) Error() string { return "the sandbox is lost: " + e.Reason }

// ErrorType is the exception type in results.
func (e *LostError) ErrorType() string { return "SandboxLostError" }
