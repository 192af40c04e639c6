package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/sandbox"
)

func tamperedf(format string, args ...any) error {
	return exception.Errorf(exception.RewardTamperedError, format, args...)
}

const (
	// sealedMode lets the tests' user write, and everyone else read.
	sealedMode = 0o755
	// unsealLimit bounds the end of sealing, when the context may have ended.
	unsealLimit = 30 * time.Second
	// testsGrace is how long processes that the tests left have between
	// SIGTERM and SIGKILL.
	testsGrace = time.Second
)

// seal is one sealed run of tests: the log directory in the sandbox belongs to
// the tests' user alone while they run.
type seal struct {
	sb   sandbox.Sandbox
	spec Spec
	mark sandbox.Mark
	// owner of what the tests write, as the evidence says it.
	owner int64
}

// root runs a script as root and fails when it does.
func (s *seal) root(ctx context.Context, what, script string, args ...string) error {
	tail := bounded.NewTail(1 << 10)
	status, err := s.sb.Exec(ctx, sandbox.Command{Argv: append([]string{"bash", "-c", script, "bash"}, args...), User: "root", Stdout: tail})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if status.Code != 0 {
		return exception.Errorf(exception.VerifierSealError, "the reward channel cannot be sealed: %s: exit code %d: %s", what, status.Code, strings.TrimSpace(tail.String()))
	}
	return nil
}

const emptyScript = `if [ -L "$1" ] || { [ -e "$1" ] && [ ! -d "$1" ]; }; then rm -rf -- "$1"; fi
mkdir -p -- "$1" && find "$1" -mindepth 1 -maxdepth 1 -exec rm -rf -- {} +`

// empty removes all that is in the log directory.
func (s *seal) empty(ctx context.Context) error {
	return s.root(ctx, "emptying "+LogDir, emptyScript, LogDir)
}

// begin gives the directory, which holds nothing but the tests' output, to the
// tests' user, makes sure that it is the one that the host sees, and notes
// which processes are there.
func (s *seal) begin(ctx context.Context) error {
	uid, err := s.testsUser(ctx)
	if err != nil {
		return err
	}
	s.owner = uid
	script := fmt.Sprintf(`chown -- "$1" "$2" && chmod %o -- "$2"`, sealedMode)
	if err := s.root(ctx, "giving "+LogDir+" to the tests' user", script, strconv.FormatInt(uid, 10), LogDir); err != nil {
		return err
	}
	if s.spec.Mounted {
		if err := s.checkDir(); err != nil {
			return err
		}
	}
	s.mark, err = s.sb.Mark(ctx)
	return err
}

// testsUser is the number of the tests' user.
func (s *seal) testsUser(ctx context.Context) (int64, error) {
	uid, err := UserID(ctx, s.sb, s.spec.User)
	if unknown, ok := errors.AsType[*unknownUserError](err); ok {
		return 0, exception.Errorf(exception.VerifierSealError, "the reward channel cannot be sealed: the tests' %v", unknown)
	}
	return uid, err
}

// UserID asks the shell of a user for the user's number. An empty name is the sandbox's own
// user.
func UserID(ctx context.Context, sb sandbox.Sandbox, user string) (int64, error) {
	out := bounded.NewTail(64)
	status, err := sb.Exec(ctx, sandbox.Command{Shell: `echo "$EUID"`, User: user, Stdout: out})
	if err != nil {
		return 0, fmt.Errorf("asking for the number of user %q: %w", user, err)
	}
	uid, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
	if status.Code != 0 || err != nil {
		return 0, &unknownUserError{user, status.Code, strings.TrimSpace(out.String())}
	}
	return uid, nil
}

// unknownUserError says that a user has no number.
type unknownUserError struct {
	user string
	code int
	said string
}

func (e *unknownUserError) Error() string {
	return fmt.Sprintf("user %q has no number: exit code %d: %s", e.user, e.code, e.said)
}

// checkDir looks from outside: an agent can have put another directory where
// the sandbox's mount was.
func (s *seal) checkDir() error {
	info, err := os.Lstat(s.spec.LogDir)
	if err != nil {
		return fmt.Errorf("sealing the reward channel: %w", err)
	}
	entries, err := os.ReadDir(s.spec.LogDir)
	if err != nil {
		return fmt.Errorf("sealing the reward channel: %w", err)
	}
	strange := slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != OutputFile })
	if !info.IsDir() || info.Mode().Perm() != sealedMode || strange {
		return tamperedf("%s in the sandbox is not the directory that was mounted there", LogDir)
	}
	// The sandbox may number its users otherwise than the host does.
	_, s.owner = ownership(info)
	return nil
}

// end kills what the tests left and judges the reward files. It returns what it
// saw in any case.
func (s *seal) end(ctx context.Context, ended []reward.File) ([]reward.File, error) {
	if err := s.sb.KillTree(ctx, s.mark, testsGrace); err != nil {
		if ctx.Err() != nil {
			return ended, err
		}
		return ended, &exception.Error{Type: exception.VerifierSealError, Message: "what the tests started may still be running: " + err.Error(), Err: err}
	}
	after, err := look(ctx, s.sb, s.spec)
	if err != nil {
		return ended, err
	}
	if !slices.Equal(ended, after) {
		return after, tamperedf("a reward file was changed after the verifier had ended")
	}
	for _, f := range after {
		if err := s.judge(f); err != nil {
			return after, err
		}
	}
	return after, nil
}

func (s *seal) judge(f reward.File) error {
	switch {
	case f.Kind != "file":
		return tamperedf("%s is not a regular file", f.Name)
	case f.Links > 1:
		return tamperedf("%s has %d names", f.Name, f.Links)
	case f.UID != s.owner:
		return tamperedf("%s belongs to user %d, not to the verifier's user %d", f.Name, f.UID, s.owner)
	}
	return nil
}

// open lets everyone write to the directory again, so that the host's user can
// move and remove its files.
func (s *seal) open(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsealLimit)
	defer cancel()
	script := `chmod 777 -- "$1"`
	if !s.spec.Mounted {
		script = emptyScript + ` && ` + script // the next step begins with nothing
	}
	// What fails here leaves the directory as it is, for root to remove.
	_ = s.root(ctx, "opening "+LogDir, script, LogDir)
}
