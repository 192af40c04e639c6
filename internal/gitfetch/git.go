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

	"github.com/proctor-run/proctor/internal/bounded"
)

const (
	// maxOutput bounds what is read of git's output, in bytes: a commit id.
	maxOutput = 4 << 10
	// maxErrors bounds what is kept of what git complains about, in bytes.
	maxErrors = 4 << 10
	// killGrace is how long git's helpers may hold its output open when it has
	// been killed.
	killGrace = 5 * time.Second
)

// settings turn off what could run a program that the repository chooses, or
// ask the user.
var settings = []string{
	"core.hooksPath=" + os.DevNull,
	"core.fsmonitor=false",
	"core.askPass=",
	"credential.interactive=false",
	"submodule.recurse=false",
	"protocol.version=2",
	"gc.auto=0",
	"maintenance.auto=false",
	"advice.detachedHead=false",
}

// environ is the user's environment without what points git at another
// repository, and with what keeps it to one protocol and from asking.
func environ(user []string, protocol Protocol) []string {
	kept := []string{"GIT_SSH_COMMAND", "GIT_SSH", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_PROXY_SSL_CAINFO", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}
	out := slices.DeleteFunc(slices.Clone(user), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(name, "GIT_") && !slices.Contains(kept, name)
	})
	allowed := "https:ssh" // the user's own configuration may turn one into the other
	if protocol == File {
		allowed = "file"
	}
	out = append(out,
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ALLOW_PROTOCOL="+allowed,
		"GIT_LFS_SKIP_SMUDGE=1",
		"GCM_INTERACTIVE=never",
		"SSH_ASKPASS_REQUIRE=never",
		"LC_ALL=C",
	)
	has := func(name string) bool {
		return slices.ContainsFunc(out, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	}
	if !has("GIT_SSH_COMMAND") && !has("GIT_SSH") {
		out = append(out, "GIT_SSH_COMMAND=ssh -oBatchMode=yes")
	}
	return out
}

// in runs git in the clone.
func (r *repository) in(ctx context.Context, args ...string) (string, error) {
	return r.run(ctx, append([]string{"--git-dir=" + r.gitDir, "--work-tree=" + r.root}, args...)...)
}

// run runs git and returns its output.
func (r *repository) run(ctx context.Context, args ...string) (string, error) {
	var argv []string
	for _, s := range settings {
		argv = append(argv, "-c", s)
	}
	cmd := exec.CommandContext(ctx, r.program, append(argv, args...)...)
	cmd.Env = r.environ
	// Its own directory, so that no repository around this one counts.
	cmd.Dir = filepath.Dir(r.gitDir)
	cmd.WaitDelay = killGrace
	ownGroup(cmd)
	stdout, stderr := bounded.NewTail(maxOutput), bounded.NewTail(maxErrors)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err := cmd.Run()
	switch {
	case err == nil:
		return stdout.String(), nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return "", fmt.Errorf("running git: %w", err)
	}
	return "", fmt.Errorf("git says: %s", r.complaint(stderr.String(), exit))
}

// complaint is the text of git's errors on one line, without credentials.
func (r *repository) complaint(text string, exit *exec.ExitError) string {
	text = strings.ReplaceAll(text, r.url, Anonymous(r.url))
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return exit.Error()
	}
	return strings.Join(lines, "; ")
}

// maxAttributes bounds how much of a .gitattributes is looked at, in bytes.
const maxAttributes = 1 << 20

// usesLFS reports whether attributes on the way to the paths, or at their top,
// name git's large file storage.
func (r *repository) usesLFS(paths []string) bool {
	root, err := os.OpenRoot(r.root)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	named := func(dir string) bool {
		f, err := bounded.OpenAt(root, filepath.Join(filepath.FromSlash(dir), ".gitattributes"))
		if err != nil {
			return false
		}
		defer func() { _ = f.Close() }()
		data := make([]byte, maxAttributes)
		n, _ := f.Read(data)
		return strings.Contains(string(data[:n]), "filter=lfs")
	}
	if named(".") {
		return true
	}
	for _, p := range paths {
		dir := ""
		for part := range strings.SplitSeq(p, "/") {
			if dir += part; named(dir) {
				return true
			}
			dir += "/"
		}
	}
	return false
}
