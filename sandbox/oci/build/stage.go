package build

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/shell"

	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// state is a stage up to some instruction.
type state struct {
	image      image.Image // with the files so far, but the settings of its beginning
	scope      *vars       // what instructions see: ARG and ENV
	env        *vars       // what the image keeps: ENV
	user       string
	workdir    string
	shell      []string
	entrypoint []string
	cmd        []string
	cmdSet     bool // by this Dockerfile
	labels     map[string]string
}

func newState(img image.Image) *state {
	c := img.Config
	st := &state{
		image: img, scope: newVars(c.Env), env: newVars(c.Env), user: c.User, workdir: c.Workdir, shell: c.Shell,
		entrypoint: c.Entrypoint, cmd: c.Cmd, labels: map[string]string{},
	}
	if _, ok := st.scope.Get("PATH"); !ok {
		st.scope.set("PATH", defaultPath)
	}
	return st
}

// clone is where a stage begins that begins with this one.
func (s *state) clone() *state {
	c := *s
	c.scope, c.env = s.scope.clone(), s.env.clone()
	c.labels = map[string]string{}
	for k, v := range s.labels {
		c.labels[k] = v
	}
	return &c
}

// changes are the settings of the image that the state is.
func (s *state) changes() image.Changes {
	return image.Changes{
		Env: s.env.env(), User: s.user, Workdir: s.workdir, Shell: s.shell,
		Entrypoint: s.entrypoint, Cmd: s.cmd, Labels: s.labels,
	}
}

// dir is where commands run.
func (s *state) dir() string {
	if s.workdir == "" {
		return "/"
	}
	return s.workdir
}

// inShell is a command line as SHELL runs it.
func (s *state) inShell(line instructions.ShellDependantCmdLine) []string {
	if !line.PrependShell {
		return slices.Clone(line.CmdLine)
	}
	sh := s.shell
	if len(sh) == 0 {
		sh = []string{"/bin/sh", "-c"}
	}
	return append(slices.Clone(sh), strings.Join(line.CmdLine, " "))
}

// executor does what an instruction does to files.
type executor interface {
	// base is the image with a name.
	base(ref string) image.Image
	run(ctx context.Context, st *state, c *instructions.RunCommand, from func(name string) (image.Image, error)) error
	copy(ctx context.Context, st *state, c *copying) error
	makeWorkdir(ctx context.Context, st *state) error
	// begin receives each instruction that may need a sandbox.
	begin(instruction string)
}

// evaluate carries the needed stages out and returns the state of the last one.
func (p *plan) evaluate(ctx context.Context, x executor) (*state, error) {
	e := &evaluation{plan: p, x: x, done: map[int]*state{}}
	var last *state
	for _, i := range p.needed {
		s := p.stages[i]
		switch {
		case s.below >= 0:
			last = e.done[s.below].clone()
		case s.base == scratch:
			last = newState(image.Image{})
		default:
			last = newState(x.base(s.base))
		}
		for _, c := range s.Commands {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			text, line := code(c), lineOf(c.Location())
			if err := e.apply(ctx, i, last, c, text); err != nil {
				return nil, atLine(line, text, err)
			}
		}
		e.done[i] = last
	}
	return last, nil
}

type evaluation struct {
	*plan
	x    executor
	done map[int]*state
}

// apply carries one instruction of stage i out.
func (e *evaluation) apply(ctx context.Context, i int, st *state, c instructions.Command, text string) error {
	if err := e.expandAll(c, st); err != nil {
		return err
	}
	from := func(name string) (image.Image, error) { return e.imageFrom(name, i) }
	switch c := c.(type) {
	case *instructions.RunCommand:
		e.x.begin(text)
		return e.x.run(ctx, st, c, from)
	case *instructions.CopyCommand:
		e.x.begin(text)
		op := copyOf(c)
		if c.From != "" {
			img, err := from(c.From)
			if err != nil {
				return err
			}
			op.image = &img
		}
		return e.x.copy(ctx, st, op)
	case *instructions.AddCommand:
		e.x.begin(text)
		return e.x.copy(ctx, st, addOf(c))
	case *instructions.WorkdirCommand:
		st.workdir = path.Join("/", st.workdir, c.Path)
		if path.IsAbs(c.Path) {
			st.workdir = path.Clean(c.Path)
		}
		e.x.begin(text)
		return e.x.makeWorkdir(ctx, st)
	}
	return e.set(st, c)
}

// imageFrom is the image of a stage, or the one with a name.
func (e *evaluation) imageFrom(name string, i int) (image.Image, error) {
	j, ok, err := e.stageFrom(name, i)
	switch {
	case err != nil:
		return image.Image{}, err
	case ok:
		return e.done[j].image, nil
	case name == scratch:
		return image.Image{}, nil
	}
	return e.x.base(name), nil
}

// set applies the instructions that change settings alone.
func (e *evaluation) set(st *state, c instructions.Command) error {
	switch c := c.(type) {
	case *instructions.EnvCommand:
		for _, kv := range c.Env {
			if err := st.env.add(kv.Key, kv.Value); err != nil {
				return err
			}
			if err := st.scope.add(kv.Key, kv.Value); err != nil {
				return err
			}
		}
	case *instructions.ArgCommand:
		return e.arg(st, c)
	case *instructions.UserCommand:
		st.user = c.User
	case *instructions.LabelCommand:
		for _, kv := range c.Labels {
			st.labels[kv.Key] = kv.Value
		}
	case *instructions.ShellCommand:
		st.shell = slices.Clone(c.Shell)
	case *instructions.CmdCommand:
		st.cmd, st.cmdSet = notNil(st.inShell(c.ShellDependantCmdLine)), true
	case *instructions.EntrypointCommand:
		st.entrypoint = notNil(st.inShell(c.ShellDependantCmdLine))
		if !st.cmdSet {
			st.cmd = []string{} // what was there are arguments of another program
		}
	}
	return nil
}

func notNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// arg declares build arguments. Nobody gives them values, so they have their
// defaults, or the values of global ones.
func (e *evaluation) arg(st *state, c *instructions.ArgCommand) error {
	for _, a := range c.Args {
		value, ok := e.global.Get(a.Key)
		if a.Value != nil {
			var err error
			if value, err = expand(e.lex, *a.Value, st.scope); err != nil {
				return err
			}
			ok = true
		}
		if !ok {
			continue
		}
		if err := st.scope.add(a.Key, value); err != nil {
			return err
		}
	}
	return nil
}

// expandAll replaces the variables in an instruction. All of it sees them as
// they are before it.
func (e *evaluation) expandAll(c instructions.Command, st *state) error {
	if _, ok := c.(*instructions.ArgCommand); ok {
		return nil // each sees those before it
	}
	if x, ok := c.(instructions.SupportsSingleWordExpansion); ok {
		if err := x.Expand(func(word string) (string, error) { return expand(e.lex, word, st.scope) }); err != nil {
			return err
		}
	}
	x, ok := c.(instructions.SupportsSingleWordExpansionRaw)
	if !ok {
		return nil
	}
	return x.ExpandRaw(func(text string) (string, error) {
		raw := shell.NewLex('\\')
		raw.SkipProcessQuotes = true
		return expand(raw, text, st.scope)
	})
}
