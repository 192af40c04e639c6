package environment

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
)

// Upload is a directory that comes into a sandbox, for example a skill.
type Upload struct {
	What   string // it is, for messages
	Dir    string // on the host
	Target string // in the sandbox: what is there is replaced, everyone may read it
}

// uploadFiles copies environment/ to the working directory of a sandbox that is
// a prebuilt image, unless the directory has a Dockerfile or a compose file
// (section 5.3).
func (e *Environment) uploadFiles(ctx context.Context, sb sandbox.Sandbox) error {
	spec, dir := &e.cfg.Spec, e.cfg.Task.EnvironmentDir()
	if spec.Image.Ref == "" || spec.Image.Build != nil || e.cfg.Backend.Capabilities().OwnRoot || e.cfg.Task.HasCompose() {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return nil // a missing directory has nothing to upload
	}
	target := spec.Workdir
	if target == "" {
		if target, err = Workdir(ctx, sb, ""); err != nil {
			return err
		}
	}
	if err := sandbox.UploadDir(ctx, sb, dir, target); err != nil {
		return fmt.Errorf("uploading %q: %w", filepath.Base(dir), err)
	}
	return nil
}

// Equip brings the uploads into the sandbox, each where every user can read it.
// What the image has beside them stays.
func (e *Environment) Equip(ctx context.Context) error {
	sb, err := e.running()
	if err != nil {
		return err
	}
	return e.equip(ctx, sb)
}

func (e *Environment) equip(ctx context.Context, sb sandbox.Sandbox) error {
	if len(e.cfg.Uploads) == 0 {
		return nil
	}
	open := sandbox.Command{Argv: []string{"chmod", "-R", "a+rX", "--"}, User: "root"}
	for _, u := range e.cfg.Uploads {
		if err := EmptyDirs(ctx, sb, u.Target); err != nil {
			return err
		}
		if err := sandbox.UploadDir(ctx, sb, u.Dir, u.Target); err != nil {
			return fmt.Errorf("uploading %s: %w", u.What, err)
		}
		open.Argv = append(open.Argv, u.Target)
	}
	if _, err := sb.Exec(ctx, open); err != nil {
		return fmt.Errorf("opening uploads to the agent: %w", err)
	}
	return nil
}

// openVolumes lets any user of the sandbox write to the volumes, which begin
// as root's.
func openVolumes(ctx context.Context, sb sandbox.Sandbox, mounts []sandbox.Mount) error {
	open := sandbox.Command{Argv: []string{"chmod", "777", "--"}, User: "root"}
	without := len(open.Argv)
	for _, m := range mounts {
		if m.Volume && !m.ReadOnly {
			open.Argv = append(open.Argv, m.Target)
		}
	}
	if len(open.Argv) == without {
		return nil
	}
	if _, err := sb.Exec(ctx, open); err != nil {
		return fmt.Errorf("opening the volumes: %w", err)
	}
	return nil
}

// Workdir asks a sandbox where commands of a user run.
func Workdir(ctx context.Context, sb sandbox.Sandbox, user string) (string, error) {
	out := bounded.NewTail(4 << 10)
	if _, err := sb.Exec(ctx, sandbox.Command{Shell: "pwd", User: user, Stdout: out}); err != nil {
		return "", fmt.Errorf("asking for the working directory: %w", err)
	}
	if dir := strings.TrimSpace(out.String()); path.IsAbs(dir) {
		return dir, nil
	}
	return "/", nil
}

// EmptyDirs makes each an empty directory that anyone may write to; what
// stands there is replaced, a mount point is kept (section 4.3).
func EmptyDirs(ctx context.Context, sb sandbox.Sandbox, dirs ...string) error {
	return emptyDirs(ctx, sb, " && chmod 777 -- %[1]s", dirs)
}

// emptyForTests empties what a verification writes to, and the tests of an
// earlier one. Who may write to the tests does not change (section 6.5).
func emptyForTests(ctx context.Context, sb sandbox.Sandbox) error {
	if err := EmptyDirs(ctx, sb, harbor.VerifierLogsDir); err != nil {
		return err
	}
	return emptyDirs(ctx, sb, "", []string{harbor.TestsDir})
}

func emptyDirs(ctx context.Context, sb sandbox.Sandbox, then string, dirs []string) error {
	for _, dir := range dirs {
		quoted, err := harbor.Linux.Quote(dir)
		if err != nil {
			return err
		}
		command := fmt.Sprintf("if [ -L %[1]s ] || { [ -e %[1]s ] && [ ! -d %[1]s ]; }; then rm -rf -- %[1]s; fi && "+
			"mkdir -p -- %[1]s && find %[1]s -mindepth 1 -maxdepth 1 -exec rm -rf -- {} +"+then, quoted)
		if _, err := sb.Exec(ctx, sandbox.Command{Shell: command, User: "root"}); err != nil {
			return fmt.Errorf("emptying %q: %w", dir, err)
		}
	}
	return nil
}
