package oci

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// dockerfileLimit bounds a Dockerfile.
const dockerfileLimit = 1 << 20

// recipe is what a Dockerfile says about its last stage without being built.
type recipe struct {
	from    string   // the image that it begins with, or "scratch"
	env     []string // in order, later ones win
	user    string
	workdir string
	// builds is the first instruction that changes files and so needs a
	// build, empty when there is none.
	builds string
}

// readRecipe reads the Dockerfile of a build context. Without one it returns
// an error that is fs.ErrNotExist.
func readRecipe(contextDir string) (*recipe, error) {
	root, err := os.OpenRoot(contextDir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.Open("Dockerfile")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := parseRecipe(io.LimitReader(f, dockerfileLimit))
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", path.Join(contextDir, "Dockerfile"), err)
	}
	return r, nil
}

// parseRecipe follows the last stage down to the image that it begins with
// (Dockerfile reference, "FROM").
func parseRecipe(in io.Reader) (*recipe, error) {
	parsed, err := parser.Parse(in)
	if err != nil {
		return nil, err
	}
	stages, args, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return nil, err
	}
	if len(stages) == 0 {
		return nil, errors.New("no FROM instruction")
	}
	lex := shell.NewLex(parsed.EscapeToken)
	global := recipeScope{lex: lex}
	for i := range args {
		if err := global.arg(&args[i], nil); err != nil {
			return nil, err
		}
	}
	r := &recipe{}
	if err := r.stage(stages, len(stages)-1, global); err != nil {
		return nil, err
	}
	return r, nil
}

// stage applies the stage with the given index, after the one that it is based on.
func (r *recipe) stage(stages []instructions.Stage, index int, global recipeScope) error {
	st := stages[index]
	from, err := global.expand(st.BaseName)
	if err != nil {
		return fmt.Errorf("FROM %s: %w", st.BaseName, err)
	}
	if below, ok := stageNamed(stages[:index], from); ok {
		if err := r.stage(stages, below, global); err != nil {
			return err
		}
	} else {
		r.from = from
	}
	scope := recipeScope{lex: global.lex, vars: append([]string(nil), r.env...)}
	for _, c := range st.Commands {
		if err := r.apply(c, &scope, global); err != nil {
			return fmt.Errorf("%s: %w", c.Name(), err)
		}
	}
	return nil
}

func stageNamed(stages []instructions.Stage, name string) (int, bool) {
	for i := len(stages) - 1; i >= 0; i-- {
		if stages[i].Name != "" && strings.EqualFold(stages[i].Name, name) {
			return i, true
		}
	}
	return 0, false
}

func (r *recipe) apply(c instructions.Command, scope *recipeScope, global recipeScope) error {
	switch c := c.(type) {
	case *instructions.ArgCommand:
		return scope.arg(c, global.vars)
	case *instructions.EnvCommand:
		// All values of one instruction see the variables from before it.
		var set []string
		for _, kv := range c.Env {
			value, err := scope.expand(kv.Value)
			if err != nil {
				return err
			}
			set = append(set, kv.Key+"="+value)
		}
		r.env, scope.vars = append(r.env, set...), append(scope.vars, set...)
	case *instructions.WorkdirCommand:
		dir, err := scope.expand(c.Path)
		if err != nil {
			return err
		}
		if !path.IsAbs(dir) {
			dir = path.Join("/", r.workdir, dir)
		}
		r.workdir = path.Clean(dir)
	case *instructions.UserCommand:
		user, err := scope.expand(c.User)
		if err != nil {
			return err
		}
		r.user = user
	case *instructions.LabelCommand, *instructions.MaintainerCommand, *instructions.CmdCommand, *instructions.EntrypointCommand,
		*instructions.ExposeCommand, *instructions.StopSignalCommand, *instructions.HealthCheckCommand, *instructions.ShellCommand,
		*instructions.VolumeCommand:
	default:
		if r.builds == "" {
			r.builds = strings.ToUpper(c.Name())
		}
	}
	return nil
}

// recipeScope holds the variables that instructions can use, as KEY=VALUE.
type recipeScope struct {
	lex  *shell.Lex
	vars []string
}

func (s *recipeScope) expand(word string) (string, error) {
	out, _, err := s.lex.ProcessWord(word, shell.EnvsFromSlice(latest(s.vars)))
	return out, err
}

// arg declares build arguments. There is nobody who gives them values, so they
// have their defaults, or the values of global ones.
func (s *recipeScope) arg(c *instructions.ArgCommand, global []string) error {
	for _, a := range c.Args {
		if a.Value == nil {
			for _, kv := range global {
				if strings.HasPrefix(kv, a.Key+"=") {
					s.vars = append(s.vars, kv)
				}
			}
			continue
		}
		value, err := s.expand(*a.Value)
		if err != nil {
			return err
		}
		s.vars = append(s.vars, a.Key+"="+value)
	}
	return nil
}

// latest keeps the last value of each variable, in the order of first mention.
func latest(env []string) []string {
	var out []string
	at := map[string]int{}
	for _, kv := range env {
		key, _, _ := strings.Cut(kv, "=")
		if i, ok := at[key]; ok {
			out[i] = kv
			continue
		}
		at[key] = len(out)
		out = append(out, kv)
	}
	return out
}
