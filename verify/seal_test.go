package verify_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
	"github.com/proctor-run/proctor/verify"
)

// sealable are the rules of a sandbox with the programs that sealing needs;
// commands are taken from their last argument's meaning, as the fake runs none.
func sealable(dir string) []fake.Rule {
	return []fake.Rule{
		fake.On(`echo "$EUID"`, fake.Print("0\n")),
		{Match: script("find"), Do: func(context.Context, *fake.Process) (int, error) {
			entries, err := os.ReadDir(dir)
			for _, e := range entries {
				err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
			}
			return 0, err
		}},
		{Match: script("chown"), Do: chmod(dir, 0o755)},
		{Match: script("chmod 777"), Do: chmod(dir, 0o777)},
	}
}

func script(has string) func(sandbox.Command) bool {
	return func(c sandbox.Command) bool { return len(c.Argv) > 2 && strings.Contains(c.Argv[2], has) }
}

func chmod(dir string, mode os.FileMode) fake.Handler {
	return func(context.Context, *fake.Process) (int, error) { return 0, os.Chmod(dir, mode) }
}

func tests(do ...fake.Handler) fake.Rule { return fake.On("/tests/test.sh", do...) }

// onHost writes to the mounted directory without the sandbox's knowledge.
func onHost(dir, name, content string) fake.Handler {
	return func(context.Context, *fake.Process) (int, error) {
		return 0, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644)
	}
}

func TestSealedVerifier(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		before  func(dir string) error
		tests   func(dir string) []fake.Handler
		rules   func(dir string) []fake.Rule
		fault   func(context.Context, fake.Call) error
		typ     string // of the error
		message string
		rewards string
	}{
		{name: "good", tests: func(dir string) []fake.Handler { return []fake.Handler{onHost(dir, "reward.txt", "0.5")} },
			rewards: "{'reward': 0.5}"},
		{name: "other files before", before: func(dir string) error { return os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600) },
			tests: func(dir string) []fake.Handler { return []fake.Handler{onHost(dir, "reward.json", "{}")} }, rewards: "{}"},
		{name: "existed before", before: func(dir string) error { return os.WriteFile(filepath.Join(dir, "reward.json"), []byte("{}"), 0o600) },
			typ: exception.RewardTamperedError, message: "reward.json existed before the verifier started"},
		{name: "a dangling link before", before: func(dir string) error { return os.Symlink("nowhere", filepath.Join(dir, "reward.txt")) },
			typ: exception.RewardTamperedError, message: "reward.txt existed before the verifier started"},
		{name: "link", tests: func(dir string) []fake.Handler {
			return []fake.Handler{onHost(dir, "own", "1"), func(context.Context, *fake.Process) (int, error) {
				return 0, os.Symlink("own", filepath.Join(dir, "reward.txt"))
			}}
		}, typ: exception.RewardTamperedError, message: "reward.txt is not a regular file"},
		{name: "second name", tests: func(dir string) []fake.Handler {
			return []fake.Handler{onHost(dir, "own", "1"), func(context.Context, *fake.Process) (int, error) {
				return 0, os.Link(filepath.Join(dir, "own"), filepath.Join(dir, "reward.txt"))
			}}
		}, typ: exception.RewardTamperedError, message: "reward.txt has 2 names"},
		{name: "directory", tests: func(dir string) []fake.Handler {
			return []fake.Handler{func(context.Context, *fake.Process) (int, error) {
				return 0, os.Mkdir(filepath.Join(dir, "reward.json"), 0o755)
			}}
		}, typ: exception.RewardTamperedError, message: "reward.json is not a regular file"},
		{name: "nothing", tests: func(string) []fake.Handler { return []fake.Handler{fake.Exit(0)} },
			typ: "RewardFileNotFoundError", message: "No reward file found at"},
		{name: "other directory in the sandbox", rules: func(dir string) []fake.Rule {
			return []fake.Rule{{Match: script("chown"), Do: fake.Exit(0)}}
		}, typ: exception.RewardTamperedError, message: "/logs/verifier in the sandbox is not the directory that was mounted there"},
		{name: "not emptied", before: func(dir string) error { return os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600) },
			rules: func(dir string) []fake.Rule { return []fake.Rule{{Match: script("find"), Do: fake.Exit(0)}} },
			typ:   exception.RewardTamperedError, message: "is not the directory that was mounted there"},
		{name: "no chown", rules: func(dir string) []fake.Rule {
			return []fake.Rule{{Match: script("chown"), Do: fake.Handler(func(_ context.Context, p *fake.Process) (int, error) {
				_, _ = p.Stdout.Write([]byte("chown: not found\n"))
				return 127, nil
			})}}
		}, typ: exception.VerifierSealError, message: "giving /logs/verifier to the tests' user: exit code 127: chown: not found"},
		{name: "unknown user", rules: func(dir string) []fake.Rule { return []fake.Rule{fake.On(`echo "$EUID"`, fake.Exit(126))} },
			typ: exception.VerifierSealError, message: "has no number"},
		{name: "what the tests left cannot be killed", tests: func(dir string) []fake.Handler { return []fake.Handler{onHost(dir, "reward.txt", "1")} },
			fault: fake.FailAt(fake.OpKillTree, 1, errors.New("one is left")), typ: exception.VerifierSealError, message: "may still be running: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			if c.before != nil {
				if err := c.before(dir); err != nil {
					t.Fatal(err)
				}
			}
			var rules []fake.Rule
			if c.rules != nil {
				rules = c.rules(dir)
			}
			if c.tests != nil {
				rules = append(rules, tests(c.tests(dir)...))
			}
			res, err := run(t, fake.Config{Rules: append(rules, sealable(dir)...), Before: c.fault}, verify.Spec{LogDir: dir, Mounted: true})
			check(t, res, err, c.typ, c.message, c.rewards)
			if info, err := os.Stat(dir); err != nil || c.name != "no chown" && c.name != "other directory in the sandbox" && info.Mode().Perm() != 0o777 {
				t.Errorf("the directory has mode %v afterwards, %v", info.Mode(), err)
			}
		})
	}
}

// run runs the sealed verification of tests in a fake sandbox.
func run(t *testing.T, cfg fake.Config, spec verify.Spec) (verify.Result, error) {
	t.Helper()
	cfg.Dir = t.TempDir()
	b := fake.New(cfg)
	t.Cleanup(func() { fake.Verify(t, b) })
	sbSpec := sandbox.Spec{Name: "x"}
	if spec.Mounted {
		sbSpec.Mounts = []sandbox.Mount{{Source: spec.LogDir, Target: verify.LogDir}}
	}
	sb, err := b.Create(t.Context(), sbSpec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Destroy(context.Background()) })
	own := t.TempDir()
	if err := os.WriteFile(filepath.Join(own, "test.sh"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	spec.TestDirs, spec.Script, spec.OutputLimit, spec.Sealed, spec.Now = []string{own}, "test.sh", 1<<10, true, time.Now
	return verify.Run(t.Context(), sb, spec)
}

func check(t *testing.T, res verify.Result, err error, typ, message, rewards string) {
	t.Helper()
	got := ""
	if typed, ok := errors.AsType[interface {
		error
		ErrorType() string
	}](err); ok {
		got = typed.ErrorType()
	}
	if got != typ || (err == nil) != (typ == "") || (message != "" && !strings.Contains(err.Error(), message)) {
		t.Errorf("got error %s %v, want %s with %q", got, err, typ, message)
	}
	have := ""
	if res.Rewards != nil {
		have = value.Repr(res.Rewards.Object())
	}
	if have != rewards || !res.Evidence.Sealed {
		t.Errorf("rewards %s, want %s; evidence %+v", have, rewards, res.Evidence)
	}
}

func TestSealedVerifierRefusesForeignOwners(t *testing.T) {
	t.Parallel()
	need.Root(t)
	dir := t.TempDir()
	res, err := run(t, fake.Config{Rules: append([]fake.Rule{tests(onHost(dir, "reward.txt", "1"), func(context.Context, *fake.Process) (int, error) {
		return 0, os.Chown(filepath.Join(dir, "reward.txt"), 4321, 0)
	})}, sealable(dir)...)}, verify.Spec{LogDir: dir, Mounted: true})
	check(t, res, err, exception.RewardTamperedError, "reward.txt belongs to user 4321, not to the verifier's user 0", "")
}

func TestSealedVerifierRefusesLaterChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	change := func(_ context.Context, call fake.Call) error {
		if call.Op != fake.OpKillTree {
			return nil
		}
		return os.WriteFile(filepath.Join(dir, "reward.txt"), []byte("1"), 0o644)
	}
	res, err := run(t, fake.Config{Before: change, Rules: append([]fake.Rule{tests(onHost(dir, "reward.txt", "0"))}, sealable(dir)...)},
		verify.Spec{LogDir: dir, Mounted: true})
	check(t, res, err, exception.RewardTamperedError, "changed after the verifier had ended", "")
}

func TestSealedVerifierWithoutMounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		files        map[string]string
		tests        []fake.Handler
		typ, message string
		rewards, sha string
		kind         string
	}{
		{name: "good", tests: []fake.Handler{fake.Write("/logs/verifier/reward.txt", "1")}, rewards: "{'reward': 1.0}",
			sha: "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b", kind: "file"},
		{name: "existed before", files: map[string]string{"/logs/verifier/reward.txt": "1"},
			typ: exception.RewardTamperedError, message: "reward.txt existed before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rules := []fake.Rule{tests(c.tests...), fake.On(`echo "$EUID"`, fake.Print("0\n")), {Match: script("find"), Do: fake.Exit(0)}}
			res, err := run(t, fake.Config{Files: c.files, Rules: rules}, verify.Spec{LogDir: t.TempDir()})
			if c.typ == "" && len(res.Evidence.After) == 1 && res.Evidence.After[0].UID != 0 {
				// The fake's files belong to whoever runs the test.
				check(t, res, err, exception.RewardTamperedError, "belongs to user", "")
				return
			}
			check(t, res, err, c.typ, c.message, c.rewards)
			if c.sha != "" && (len(res.Evidence.After) != 1 || res.Evidence.After[0].SHA256 != c.sha || res.Evidence.After[0].Kind != c.kind) {
				t.Errorf("evidence %+v", res.Evidence)
			}
		})
	}
}

func TestRewardFilesOfHostileDirectories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(
		os.Symlink("/etc/passwd", filepath.Join(dir, "reward.txt")),
		os.Mkdir(filepath.Join(dir, "reward.json"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	got := verify.RewardFiles(dir)
	if len(got) != 2 || got[0].Kind != "other" || got[1].Kind != "link" || got[0].SHA256+got[1].SHA256 != "" {
		t.Errorf("got %+v", got)
	}
	if got := verify.RewardFiles(filepath.Join(dir, "missing")); len(got) != 0 {
		t.Errorf("of a missing directory: %+v", got)
	}
}
