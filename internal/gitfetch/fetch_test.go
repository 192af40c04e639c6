package gitfetch_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/gitfetch"
	"github.com/proctor-run/proctor/internal/need"
)

// repo is a repository that a test makes.
type repo struct {
	t   *testing.T
	dir string
}

func newRepo(t *testing.T) *repo {
	t.Helper()
	need.Program(t, "git")
	r := &repo{t, t.TempDir()}
	r.git("init", "-q", "-b", "main")
	return r
}

func (r *repo) url() string { return "file://" + filepath.ToSlash(r.dir) }

func (r *repo) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repo) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repo) link(name, target string) {
	r.t.Helper()
	if err := os.Symlink(target, filepath.Join(r.dir, filepath.FromSlash(name))); err != nil {
		r.t.Fatal(err)
	}
}

// commit records everything and returns its id.
func (r *repo) commit() string {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "state")
	return r.git("rev-parse", "HEAD")
}

func options() gitfetch.Options {
	return gitfetch.Options{Environ: os.Environ(), Local: true}
}

// files lists a directory's files, relative.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			list = append(list, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestFetch(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("tasks/a/task.toml", "one")
	r.write("tasks/a/tests/test.sh", "#!/bin/sh")
	r.write("tasks/we ird[x]*/f", "odd")
	r.write("tasks/b/big", "not wanted")
	r.write("big", "not wanted")
	first := r.commit()
	r.git("tag", "v1")
	r.write("tasks/a/task.toml", "two")
	second := r.commit()

	type got struct {
		commit, text string
		files        []string
	}
	var all []got
	tmp := t.TempDir()
	o := options()
	o.Dir = tmp
	wants := []gitfetch.Want{{Paths: []string{"tasks/a", "tasks/we ird[x]*"}}, {Commit: first, Paths: []string{"tasks/a"}}, {Commit: "v1", Paths: []string{"tasks/a"}}}
	err := gitfetch.Fetch(t.Context(), r.url(), wants, o, func(tree gitfetch.Tree) error {
		if _, err := os.Stat(filepath.Join(tree.Root, "tasks", "b")); err == nil {
			t.Error("a directory that nobody wants was checked out")
		}
		to := t.TempDir()
		if err := tree.Copy("tasks/a", to); err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(to, "task.toml"))
		all = append(all, got{tree.Commit, string(text), files(t, to)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 3 {
		t.Fatalf("got %d trees, want 3", len(all))
	}
	for i, want := range []got{{commit: second, text: "two"}, {commit: first, text: "one"}, {commit: first, text: "one"}} {
		if all[i].commit != want.commit || all[i].text != want.text || !slices.Equal(all[i].files, []string{"task.toml", "tests/test.sh"}) {
			t.Errorf("tree %d: got %+v, want %+v", i, all[i], want)
		}
	}
	if left := files(t, tmp); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestFetchWholeRepository(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("task.toml", "x")
	r.write("tests/test.sh", "y")
	r.commit()
	to := t.TempDir()
	err := gitfetch.Fetch(t.Context(), r.url(), []gitfetch.Want{{Paths: []string{"."}}}, options(), func(tree gitfetch.Tree) error {
		return tree.Copy(".", to)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := files(t, to), []string{"task.toml", "tests/test.sh"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHostileRepository(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		make       func(*repo)
	}{
		{"absolute link", "leads out of the task", func(r *repo) { r.link("t/x", "/etc/passwd") }},
		{"link up", "leads out of the task", func(r *repo) { r.link("t/x", "../secret"); r.write("secret", "s") }},
		{"chain of links", "leads out of the task", func(r *repo) { r.link("t/s", "."); r.link("t/out", "s/../other") }},
		{"task is a link", "there is no directory", func(r *repo) {
			r.git("rm", "-rq", "--cached", "--ignore-unmatch", "t")
			_ = os.RemoveAll(filepath.Join(r.dir, "t"))
			r.link("t", "/etc")
		}},
		{"task is a file", "there is no directory", func(r *repo) { _ = os.RemoveAll(filepath.Join(r.dir, "t")); r.write("t", "x") }},
		{"no such task", "there is no directory", func(r *repo) { _ = os.RemoveAll(filepath.Join(r.dir, "t")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			r.write("t/task.toml", "x")
			r.write("other", "x")
			c.make(r)
			r.commit()
			err := gitfetch.Fetch(t.Context(), r.url(), []gitfetch.Want{{Paths: []string{"t"}}}, options(), func(tree gitfetch.Tree) error {
				return tree.Copy("t", t.TempDir())
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

// TestLinksInside keeps links that stay within the directory.
func TestLinksInside(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("t/d/f", "x")
	r.link("t/l", "d/../d/f")
	r.link("t/d/up", "../d")
	r.link("t/nowhere", "not-there")
	r.commit()
	to := t.TempDir()
	err := gitfetch.Fetch(t.Context(), r.url(), []gitfetch.Want{{Paths: []string{"t"}}}, options(), func(tree gitfetch.Tree) error {
		return tree.Copy("t", to)
	})
	if err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(filepath.Join(to, "l")); err != nil || target != "d/../d/f" {
		t.Errorf("link is %q, %v", target, err)
	}
}

// TestNothingOfTheRepositoryRuns installs hooks and filters where git would
// look for them, in the user's template too.
func TestNothingOfTheRepositoryRuns(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	mark := filepath.Join(t.TempDir(), "ran")
	script := "#!/bin/sh\ntouch '" + mark + "'\n"
	r.write("t/task.toml", "x")
	r.write(".gitattributes", "* filter=evil diff=evil\n")
	r.write(".githooks/post-checkout", script)
	sub := newRepo(t)
	sub.write("x", "y")
	sub.commit()
	r.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", sub.url(), "t/sub")
	r.commit()
	home := t.TempDir()
	template := filepath.Join(home, "template", "hooks")
	if err := errors.Join(
		os.MkdirAll(template, 0o755),
		os.WriteFile(filepath.Join(template, "post-checkout"), []byte(script), 0o755),
		os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[init]\n\ttemplateDir = "+filepath.Dir(template)+"\n[submodule]\n\trecurse = true\n"), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	o := options()
	o.Environ = append(o.Environ, "HOME="+home, "GIT_DIR=/nowhere", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.hooksPath", "GIT_CONFIG_VALUE_0=.githooks")
	to := t.TempDir()
	err := gitfetch.Fetch(t.Context(), r.url(), []gitfetch.Want{{Paths: []string{"t"}}}, o, func(tree gitfetch.Tree) error {
		return tree.Copy("t", to)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("something of the repository was run")
	}
	if got := files(t, to); !slices.Equal(got, []string{"task.toml"}) {
		t.Errorf("got %q: the submodule's content is not part of the task", got)
	}
}

func TestFetchErrors(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("t/task.toml", "x")
	id := r.commit()
	want := func(commit string) []gitfetch.Want { return []gitfetch.Want{{Commit: commit, Paths: []string{"t"}}} }
	none := func(gitfetch.Tree) error { return nil }
	for _, c := range []struct {
		name, url, want string
		wants           []gitfetch.Want
	}{
		{"no repository", "file:///nowhere/at/all", `cloning "file:///nowhere/at/all": git says: `, want("")},
		{"short id", r.url(), "give all 40 digits", want(id[:7])},
		{"no such commit", r.url(), "git says: ", want(strings.Repeat("0", 40))},
		{"no such branch", r.url(), "couldn't find remote ref", want("nothing")},
		{"option as commit", r.url(), "begins with a hyphen", want("--upload-pack=x")},
		{"path out", r.url(), `must not hold ".."`, []gitfetch.Want{{Paths: []string{"../x"}}}},
		{"absolute path", r.url(), "must be relative", []gitfetch.Want{{Paths: []string{"/etc"}}}},
		{"git's own", r.url(), `must not hold ".Git"`, []gitfetch.Want{{Paths: []string{"a/.Git/b"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := gitfetch.Fetch(t.Context(), c.url, c.wants, options(), none)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestFetchEndsInTime(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("t/task.toml", "x")
	r.commit()
	o := options()
	o.Limit = time.Nanosecond
	err := gitfetch.Fetch(t.Context(), r.url(), []gitfetch.Want{{Paths: []string{"t"}}}, o, func(gitfetch.Tree) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "it took longer than 1ns") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = gitfetch.Fetch(ctx, r.url(), []gitfetch.Want{{Paths: []string{"t"}}}, options(), func(gitfetch.Tree) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// TestLFS tells that pointers were fetched where git-lfs is not there.
func TestLFS(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git-lfs"); err == nil {
		t.Skip("git-lfs is installed here")
	}
	r := newRepo(t)
	r.write("t/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	r.write("t/x.bin", "version https://git-lfs.github.com/spec/v1\n")
	r.write("u/x", "x")
	r.commit()
	for path, want := range map[string]bool{"t": true, "u": false} {
		err := gitfetch.Fetch(t.Context(), r.url(), []gitfetch.Want{{Paths: []string{path}}}, options(), func(tree gitfetch.Tree) error {
			if tree.NoLFS != want {
				t.Errorf("%s: NoLFS is %v, want %v", path, tree.NoLFS, want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoGit says what is missing; it changes the environment and so runs alone.
func TestNoGit(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := gitfetch.Fetch(t.Context(), "https://localhost/r", nil, options(), nil)
	if !errors.Is(err, gitfetch.ErrNoGit) {
		t.Errorf("got %v, want %v", err, gitfetch.ErrNoGit)
	}
}
