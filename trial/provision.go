package trial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
)

// maxKeptOutput bounds what an installation may leave in the agent's log directory to be
// shared, in bytes.
const maxKeptOutput = 4 << 20

// keptFile is a file of the agent's log directory.
type keptFile struct {
	name    string
	mode    fs.FileMode
	content []byte
}

// joinSetups waits until it is known who installs what the agent needs; nil says that the
// trial does so for itself.
func (a *attempt) joinSetups(ctx context.Context) *setupTurn {
	if !a.sharesSetup() {
		return nil
	}
	return a.r.Setups.join(ctx, a.res.Config, func(other string) {
		a.log.printf("Waiting for trial %s, which installs what the agent needs", other)
		a.emit(EventProgress, "waiting for what trial "+other+" installs")
	})
}

// sharesSetup reports whether what the agent's installation leaves can be the same in other
// trials, and be kept. Where commands reach a model through this program they are told of it
// in words that belong to one trial, and may write them down. Nothing in memory is kept, and
// nothing that lies in mounts.
func (a *attempt) sharesSetup() bool {
	sb, keeps := a.sandbox().(sandbox.Snapshotter)
	_, provisions := a.agent.(agent.Provisioner)
	switch {
	case a.r.Setups == nil, !keeps, !provisions, a.alone, a.gateway != nil, a.r.Hardened, a.mountsMore, KeepsSandbox(a.cfg.Environment):
		return false
	}
	return sb.CanSnapshot() == nil
}

// mountsMore reports whether a sandbox sees more that it can write to outside its root
// than the directories of a trial for logs.
func mountsMore(spec *sandbox.Spec, logs []sandbox.Mount) bool {
	return slices.ContainsFunc(spec.Mounts, func(m sandbox.Mount) bool { return !m.ReadOnly && !slices.Contains(logs, m) })
}

// provision sees to it that what the agent's installation leaves is in the sandbox, where
// that is shared, and reports whether it is.
func (a *attempt) provision(ctx context.Context, turn *setupTurn) (done bool, err error) {
	switch {
	case turn == nil:
		return false, nil
	case turn.from != nil:
		return a.takeProvisioned(ctx, turn.from)
	}
	defer turn.end()
	installer, ok := a.agent.(agent.Provisioner)
	if !ok {
		return false, nil
	}
	began := a.now()
	if err := installer.Provision(ctx, a.agentEnv(nil)); err != nil {
		return false, err
	}
	if a.now().Sub(began) < worthSharing || !turn.wanted() {
		return true, nil
	}
	return a.offerProvisioned(ctx, turn)
}

// takeProvisioned replaces the sandbox with one that begins with what another trial's agent
// has installed. Where that fails the sandbox is as it was.
func (a *attempt) takeProvisioned(ctx context.Context, p *provisioned) (done bool, err error) {
	if p.checksum != a.res.TaskChecksum || p.image != a.notes.ImageDigest {
		a.log.printf("What trial %s has installed is not taken: its task or its image is another", p.trial)
		return false, nil
	}
	if err := a.env.BeginFrom(ctx, p.snapshot); err != nil {
		return false, a.startAgain(ctx, fmt.Errorf("beginning with what trial %s has installed: %w", p.trial, err))
	}
	a.noteSandbox()
	a.setBaseline(ctx)
	if err := a.restore(p.output); err != nil {
		return false, fmt.Errorf("keeping the agent's output: %w", err)
	}
	a.notes.SetupFrom = p.trial
	a.log.printf("The sandbox begins with what the agent of trial %s has installed", p.trial)
	return true, nil
}

// offerProvisioned lets other trials begin with what the agent has installed. It reports
// false where the sandbox had to be started again.
func (a *attempt) offerProvisioned(ctx context.Context, turn *setupTurn) (done bool, err error) {
	p := &provisioned{trial: a.cfg.TrialName, checksum: a.res.TaskChecksum, image: a.notes.ImageDigest}
	if p.output, err = a.onlyFiles(ctx); err != nil {
		a.log.printf("What the agent's installation left is not shared with other trials: %v", err)
		return true, nil
	}
	keeper, ok := a.sandbox().(sandbox.Snapshotter)
	if !ok {
		return true, nil
	}
	if p.snapshot, err = keeper.Snapshot(ctx, "agent setup"); err != nil {
		if errors.Is(err, sandbox.ErrUnsupported) {
			return true, nil
		}
		return false, a.startAgain(ctx, fmt.Errorf("keeping what the agent's installation left: %w", err))
	}
	a.setBaseline(ctx)
	p.size = p.snapshot.Size()
	if turn.offer(p) {
		a.log.printf("Other trials begin with what the agent has installed, %d bytes", p.size)
		return true, nil
	}
	a.log.printf("What the agent has installed is not shared with other trials: there is no room for it")
	if err := release(ctx, p.snapshot); err != nil {
		a.warn("%v", err)
	}
	return true, nil
}

// startAgain makes the sandbox one that nothing has happened in, after something that should
// only have saved time has failed.
func (a *attempt) startAgain(ctx context.Context, why error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	a.warn("%v; the agent is set up in a new sandbox", why)
	if err := a.env.Renew(ctx); err != nil {
		return err
	}
	a.noteSandbox()
	a.setBaseline(ctx)
	return nil
}

// onlyFiles returns what an installation has left in the agent's log directory. The error
// tells what it has left that a snapshot of the sandbox does not keep.
func (a *attempt) onlyFiles(ctx context.Context) ([]keptFile, error) {
	running := listProcesses(ctx, a.sandbox())
	for id, name := range running {
		if name == sandbox.HelperName {
			delete(running, id)
		}
	}
	switch {
	case running == nil:
		return nil, errors.New("its processes cannot be listed")
	case len(running) > 0:
		return nil, fmt.Errorf("processes run in the sandbox: %q", running.names()[:min(len(running), maxNames)])
	}
	status, err := a.sandbox().Exec(ctx, sandbox.Command{Shell: `test -z "$(ls -A /dev/shm 2>/dev/null)"`, User: "root"})
	if err != nil {
		return nil, err
	}
	if status.Code != 0 {
		return nil, errors.New("there are files in /dev/shm")
	}
	var output []keptFile
	for _, d := range environment.LogDirs() {
		files, err := readPlain(a.hostDir(d.Name))
		if err == nil && len(files) > 0 && d.Inside != harbor.AgentLogsDir {
			err = fmt.Errorf("there are files in %s", d.Inside)
		}
		if err != nil {
			return nil, err
		}
		output = append(output, files...)
	}
	return output, nil
}

// readPlain reads the files of a log directory, which must be all that it holds.
func readPlain(dir string) ([]keptFile, error) {
	root, err := bounded.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", filepath.Base(dir), err)
	}
	var files []keptFile
	room := int64(maxKeptOutput)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is no plain file", filepath.Join(filepath.Base(dir), e.Name()))
		}
		content, err := bounded.ReadAt(root, e.Name(), room)
		if err != nil {
			return nil, err
		}
		room -= int64(len(content))
		files = append(files, keptFile{name: e.Name(), mode: info.Mode().Perm(), content: content})
	}
	return files, nil
}

// restore writes files to the agent's log directory.
func (a *attempt) restore(files []keptFile) error {
	for _, k := range files {
		f, err := bounded.Truncate(a.hostDir("agent"), k.name)
		if err != nil {
			return err
		}
		_, err = f.Write(k.content)
		if err := errors.Join(err, f.Chmod(k.mode), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
