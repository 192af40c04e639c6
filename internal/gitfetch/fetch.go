package gitfetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// DefaultLimit is how long fetching from one repository may take.
const DefaultLimit = 15 * time.Minute

// Options are what Fetch takes from the outside world.
type Options struct {
	// Environ are the user's variables: git finds its configuration and the
	// user's keys through them.
	Environ []string
	// Local allows repositories on this machine, see CheckURL.
	Local bool
	// Limit bounds the whole of it; 0 means DefaultLimit.
	Limit time.Duration
	// Dir is where the clone lives while it is needed; "" means the directory
	// for temporary files.
	Dir string
}

// Want asks for directories of one commit.
type Want struct {
	Commit string   // a commit id, branch or tag; "" is the default branch
	Paths  []string // of directories, with slashes, relative to the root
}

// Tree is a commit that has been checked out as far as it is wanted.
type Tree struct {
	Want   Want
	Commit string // its full id
	// Root is the top of the repository. It is there until take returns.
	Root string
	// NoLFS: the paths hold files of git's large file storage, and what is
	// there is pointers to them, since the program git-lfs is not.
	NoLFS bool
}

// ErrNoGit is the error on a machine without git.
var ErrNoGit = errors.New("git tasks are fetched with the program git, which is not on the PATH; install git, or give a local directory with -p")

// Fetch fetches from one repository what is wanted, and calls take with each
// tree in turn. It ends with ctx, and with every program it has started.
func Fetch(ctx context.Context, url string, wants []Want, o Options, take func(Tree) error) (err error) {
	protocol, err := check(url, wants, o)
	if err != nil {
		return err
	}
	program, err := exec.LookPath("git")
	if err != nil {
		return ErrNoGit
	}
	limit := o.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
	defer cancel()
	dir, err := os.MkdirTemp(o.Dir, "proctor-git-")
	if err != nil {
		return fmt.Errorf("fetching from git: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	from := url
	if protocol == File && !scheme.MatchString(url) {
		if from, err = filepath.Abs(url); err != nil {
			return err
		}
	}
	r := &repository{
		program: program, url: from,
		gitDir: filepath.Join(dir, "git"), root: filepath.Join(dir, "tree"),
		environ: environ(o.Environ, protocol),
	}
	if err := r.clone(ctx, wants); err != nil {
		return fmt.Errorf("cloning %q: %w", Anonymous(url), err)
	}
	for _, w := range wants {
		tree, err := r.checkOut(ctx, w)
		if err != nil {
			return fmt.Errorf("fetching %s of %q: %w", nameOf(w), Anonymous(url), err)
		}
		if err := take(tree); err != nil {
			return err
		}
	}
	return nil
}

func nameOf(w Want) string {
	if w.Commit == "" {
		return "the default branch"
	}
	return fmt.Sprintf("commit %q", w.Commit)
}

func check(url string, wants []Want, o Options) (Protocol, error) {
	protocol, err := CheckURL(url, o.Local)
	errs := []error{err}
	for _, w := range wants {
		if w.Commit != "" {
			errs = append(errs, CheckCommit(w.Commit))
		}
		for _, p := range w.Paths {
			errs = append(errs, CheckPath(p))
		}
	}
	return protocol, errors.Join(errs...)
}

// repository is a clone whose own directory lies beside its tree, where links
// in the tree cannot show it.
type repository struct {
	program      string
	url          string
	gitDir, root string
	environ      []string
}

// clone gets the newest commit of the default branch without file contents;
// those that are wanted are fetched by the checkout.
func (r *repository) clone(ctx context.Context, wants []Want) error {
	_, err := r.run(ctx, "clone", "--quiet", "--depth=1", "--filter=blob:none", "--no-checkout", "--no-tags", "--no-local",
		"--no-recurse-submodules", "--template=", "--separate-git-dir="+r.gitDir, "--", r.url, r.root)
	if err != nil {
		return err
	}
	var paths []string
	for _, w := range wants {
		paths = append(paths, w.Paths...)
	}
	if slices.Contains(paths, ".") {
		return nil // the whole tree
	}
	slices.Sort(paths)
	if _, err := r.in(ctx, "config", "core.sparseCheckout", "true"); err != nil {
		return err
	}
	info := filepath.Join(r.gitDir, "info")
	if err := os.MkdirAll(info, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(info, "sparse-checkout"), []byte(sparsePatterns(slices.Compact(paths))), 0o600)
}

// sparsePatterns asks for directories, and for the attributes that say how
// files in them are to be written.
func sparsePatterns(paths []string) string {
	var b strings.Builder
	b.WriteString("/.gitattributes\n")
	for _, p := range paths {
		dir := ""
		for part := range strings.SplitSeq(p, "/") {
			dir += "/" + escapePattern(part)
			b.WriteString(dir + "/.gitattributes\n")
		}
		b.WriteString(dir + "/\n")
	}
	return b.String()
}

func escapePattern(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if strings.IndexByte(`\*?[]! #`, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

func (r *repository) checkOut(ctx context.Context, w Want) (Tree, error) {
	rev := "HEAD"
	if w.Commit != "" {
		_, err := r.in(ctx, "fetch", "--quiet", "--depth=1", "--filter=blob:none", "--no-tags", "--no-recurse-submodules", "--", "origin", w.Commit)
		if err != nil {
			return Tree{}, explainMissing(w.Commit, err)
		}
		rev = "FETCH_HEAD"
	}
	id, err := r.in(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		return Tree{}, errors.New("the repository has no commits there")
	}
	id = strings.TrimSpace(id)
	if !IsFullID(id) {
		return Tree{}, fmt.Errorf("git names the commit %q", id)
	}
	if _, err := r.in(ctx, "checkout", "--quiet", "--force", "--detach", id); err != nil {
		return Tree{}, err
	}
	t := Tree{Want: w, Commit: id, Root: r.root}
	if !r.usesLFS(w.Paths) {
		return t, nil
	}
	if _, err := exec.LookPath("git-lfs"); err != nil {
		t.NoLFS = true
		return t, nil
	}
	_, err = r.in(ctx, "lfs", "pull", "origin", "--include="+strings.Join(w.Paths, ","))
	return t, err
}

// explainMissing adds what people trip over: a server gives commits by their
// full names only.
func explainMissing(commit string, err error) error {
	if isShortID(commit) {
		return fmt.Errorf("%w; give all 40 digits of the commit, servers know no shortened ones", err)
	}
	return err
}

func isShortID(commit string) bool {
	return len(commit) >= 4 && len(commit) < 40 && strings.Trim(strings.ToLower(commit), "0123456789abcdef") == ""
}
