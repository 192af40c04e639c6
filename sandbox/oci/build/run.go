package build

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// logTail is how much of a failed command's output an error shows, in bytes.
const logTail = 8 << 10

// runError is a command of a RUN instruction that failed.
type runError struct {
	err error
	log string
}

func (e *runError) Error() string { return e.err.Error() }
func (e *runError) Unwrap() error { return e.err }

// script is a here-document that is a program.
type script struct{ name, data string }

// scriptsDir is where here-documents with an interpreter of their own are run.
const scriptsDir = "/dev/pipes"

func (w *worker) run(ctx context.Context, st *state, c *instructions.RunCommand, from func(string) (image.Image, error)) error {
	argv, inline, err := commandLine(st, c)
	if err != nil {
		return err
	}
	mounts, err := w.mountsOf(ctx, st, c, from)
	if err != nil {
		return err
	}
	if inline != nil {
		mounts = append(mounts, inline.mount())
	}
	s := Step{Network: sandbox.NetworkPublic}
	if instructions.GetNetwork(c) == instructions.NetworkNone {
		s.Network = sandbox.NetworkNone
	}
	if len(mounts) > 0 {
		caches := opened{}
		s.Mounts = func(dir string) ([]sandbox.Mount, error) { return materialise(dir, mounts, caches) }
		s.release = caches.close
	}
	env, dir, user := st.scope.env(), st.dir(), st.user
	var keys, targets []string
	for _, m := range mounts {
		keys, targets = append(keys, m.key), append(targets, m.target)
	}
	key, err := stepKey(w.builder.arch, st.image, "run", argv, env, dir, user, s.Network, keys)
	if err != nil {
		return err
	}
	work := func(ctx context.Context, sb sandbox.Sandbox) error {
		return runIn(ctx, sb, sandbox.Command{Argv: argv, Env: env, Dir: dir, User: user})
	}
	base := st.image
	return w.step(ctx, st, key, s, work, func(upper string) error { return removeStubs(upper, base, targets) })
}

// runIn runs a command in its working directory, which is made when missing.
func runIn(ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Command) error {
	if err := sb.Upload(ctx, cmd.Dir, strings.NewReader(emptyTar)); err != nil {
		return fmt.Errorf("making the working directory %q: %w", cmd.Dir, err)
	}
	out := bounded.NewTail(logTail)
	cmd.Stdout = out
	status, err := sb.Exec(ctx, cmd)
	if err == nil && status.Code != 0 {
		err = fmt.Errorf("exit status %d", status.Code)
	}
	if err != nil {
		return &runError{err: err, log: strings.ToValidUTF8(out.String(), "\uFFFD")}
	}
	return nil
}

// emptyTar is an archive of nothing: two blocks of zeros.
var emptyTar = strings.Repeat("\x00", 1024)

// plainName is what a here-document's name must be to be a file's too.
var plainName = regexp.MustCompile(`^\w[\w.-]{0,99}$`)

// commandLine is what a RUN instruction runs (Dockerfile reference, "Here-
// Documents"). A document alone is the shell's input, or with #! a program;
// otherwise the shell reads the documents itself.
func commandLine(st *state, c *instructions.RunCommand) ([]string, *script, error) {
	line := c.ShellDependantCmdLine
	if len(line.Files) == 0 {
		argv := st.inShell(line)
		if len(argv) == 0 {
			return nil, nil, fmt.Errorf("there is no command")
		}
		return argv, nil, nil
	}
	if len(line.CmdLine) != 1 || !line.PrependShell {
		return nil, nil, unsupported("a here-document here")
	}
	first := line.Files[0]
	text := first.Data
	if first.Chomp {
		text = parser.ChompHeredocContent(text)
	}
	doc, err := parser.ParseHeredoc(line.CmdLine[0])
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("reading the here-document's name: %w", err)
	case doc == nil:
		var full strings.Builder
		full.WriteString(line.CmdLine[0])
		for _, f := range line.Files {
			full.WriteString("\n" + f.Data + f.Name)
		}
		text = full.String()
	case strings.HasPrefix(first.Data, "#!"):
		s := &script{name: "script", data: text}
		if plainName.MatchString(first.Name) {
			s.name = first.Name
		}
		line.CmdLine = []string{path.Join(scriptsDir, s.name)}
		return st.inShell(line), s, nil
	}
	line.CmdLine = []string{text}
	return st.inShell(line), nil, nil
}

func (s *script) mount() mount {
	return mount{
		target: path.Join(scriptsDir, s.name), readOnly: true, key: "script " + s.data,
		fill: func(name string) error { return writeFile(name, s.data, 0o755) },
	}
}

func writeFile(name, data string, mode fs.FileMode) error {
	if err := os.WriteFile(name, []byte(data), mode); err != nil {
		return err
	}
	return os.Chmod(name, mode)
}
