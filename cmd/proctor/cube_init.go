package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/shellword"
	"github.com/proctor-run/proctor/internal/version"
)

// cubeModule holds the files of a new cube's module, as templates.
// Those of containermodule take the places of cubemodule's for a cube whose
// tasks run in containers.
//
//go:embed all:cubemodule all:containermodule
var cubeModule embed.FS

// cubeInit is what "cube init" is asked for.
type cubeInit struct {
	name, parent, module string
	container            bool
	sources              string // of this proctor, for a build that is no release; empty for none
}

func newCubeInit(env *Env) *cobra.Command {
	var f cubeInit
	cmd := &cobra.Command{
		Use:   "init NAME",
		Short: "Make a Go module with a cube that works, to start from",
		Long: `init makes a directory with a Go module: cube.go has the benchmark with two tasks
and one tool, main.go is a program with the commands list, show, test, run and
resume, and cube_test.go checks that the cube keeps the rules. Nothing that
exists is changed.

With --container the tasks run in containers, and the program and the tests open
the sandboxes for them.`,
		Example: `  proctor cube init word-puzzles
  proctor cube init word-puzzles --module example.org/word-puzzles
  proctor cube init shell-puzzles --container`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return withHint(usageErrorf("accepts one name, got %d", len(args)), "proctor cube %s", cmd.Use)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			f.name = args[0]
			if err := f.findSources(); err != nil {
				return err
			}
			dir, err := initCube(f)
			if err != nil {
				return err
			}
			printInit(env, dir, f)
			return nil
		},
	}
	cmd.Flags().StringVarP(&f.parent, "path", "p", ".", "make it in this `directory`")
	cmd.Flags().StringVar(&f.module, "module", "", "the module's `path` (default: the name)")
	cmd.Flags().StringVar(&f.sources, "sources", "", "build with the proctor in this `directory` (default: where this one was built, unless it is a release)")
	cmd.Flags().BoolVar(&f.container, "container", false, "the tasks run in containers")
	return cmd
}

// sourcesPlace stands for the directory of proctor's sources where it is not known.
const sourcesPlace = "/path/to/proctor"

// printInit says what to do with a new cube: commands that work as they are, but for
// the place of the sources where that is not known.
func printInit(env *Env, dir string, f cubeInit) {
	enter := "cd " + clean(shellword.Quote(dir))
	const try = "go mod tidy && go test . && go run . run"
	if moduleVersion() != "" || f.sources != "" {
		_, _ = fmt.Fprintf(env.Stdout, "%s is a cube; try it with: %s && %s\n", clean(dir), enter, try)
		return
	}
	_, _ = fmt.Fprintf(env.Stdout, `%s is a cube. This proctor is not a release, which Go could fetch: say first where its sources are, as in
  %s && go mod edit -replace %s=%s
then try it with
  %s
`, clean(dir), enter, proctorModule, sourcesPlace, try)
}

const proctorModule = "github.com/proctor-run/proctor"

// findSources sets where the sources of this proctor are: as the user says; of a
// release nowhere, for Go fetches them; else where this program was built, or around
// the working directory.
func (f *cubeInit) findSources() (err error) {
	if f.sources != "" {
		if !isProctor(f.sources) {
			return usageErrorf("--sources: %q has no go.mod of %s", f.sources, proctorModule)
		}
		f.sources, err = filepath.Abs(f.sources)
		return err
	}
	if moduleVersion() != "" {
		return nil
	}
	_, file, _, _ := runtime.Caller(0)
	built := filepath.Join(filepath.Dir(file), "..", "..")
	if filepath.IsAbs(file) && isProctor(built) {
		f.sources = built
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil //nolint:nilerr // then nothing is found
	}
	for ; !isProctor(dir); dir = filepath.Dir(dir) {
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
	f.sources = dir
	return nil
}

// isProctor reports whether a directory has proctor's module.
func isProctor(dir string) bool {
	data, err := bounded.ReadIn(dir, "go.mod", 1<<20)
	return err == nil && strings.HasPrefix(string(data), "module "+proctorModule+"\n")
}

// cubeName is what a new cube may be called: a directory, a module and, without
// dashes, a package of Python's.
var cubeName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// reserved names do not build, are taken by the task layer's own types, or are
// devices of Windows.
var reserved = regexp.MustCompile(`^(cube|main|go|con|prn|aux|nul|com[0-9]|lpt[0-9])$`)

// standard are the first elements of the paths of Go's own packages: a module of such
// a name does not build.
var standard = strings.Fields(`
archive bufio bytes cmp compress container context crypto database debug embed encoding
errors expvar flag fmt go hash html image index internal io iter log maps math mime net
os path plugin reflect regexp runtime slices sort strconv strings structs sync syscall
testing text time unicode unique unsafe vendor weak
`)

var modulePath = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~/-]*$`)

func initCube(f cubeInit) (dir string, err error) {
	name, module := f.name, f.module
	if module == "" {
		module = name
	}
	switch {
	case !cubeName.MatchString(name):
		return "", withHint(usageErrorf("%q is not a name for a cube", name), "use small letters, digits and '-', as in word-puzzles")
	case reserved.MatchString(name):
		return "", withHint(usageErrorf("%q cannot be the name of a cube", name), "Go, the task layer or an operating system has a meaning for it")
	case slices.Contains(standard, strings.Split(module, "/")[0]):
		return "", withHint(usageErrorf("%q cannot be the module of a cube: Go has a package of that name", module), "give the module a path of its own with --module")
	case !modulePath.MatchString(module) || path.Clean(module) != module:
		return "", usageErrorf("%q is not a module path", module)
	}
	dir = filepath.Join(f.parent, name)
	if err := os.MkdirAll(f.parent, 0o755); err != nil {
		return "", fmt.Errorf("making the cube: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return "", withHint(usageErrorf("%q exists already", dir), "choose another name")
		}
		return "", fmt.Errorf("making the cube: %w", err)
	}
	values := map[string]string{"Name": name, "Module": module, "Package": strings.ReplaceAll(name, "-", "_"), "Version": moduleVersion(), "Sources": f.sources}
	templates := []string{"cubemodule"}
	if f.container {
		templates = append(templates, "containermodule")
	}
	for _, from := range templates {
		if err := writeTemplates(dir, from, values); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// writeTemplates writes the files of a directory of templates.
func writeTemplates(dir, from string, values map[string]string) error {
	files, err := cubeModule.ReadDir(from)
	if err != nil {
		return fmt.Errorf("reading the templates: %w", err)
	}
	for _, f := range files {
		t, err := template.ParseFS(cubeModule, path.Join(from, f.Name()))
		if err != nil {
			return fmt.Errorf("reading the template %s: %w", f.Name(), err)
		}
		var text strings.Builder
		if err := t.Execute(&text, values); err != nil {
			return fmt.Errorf("filling the template %s: %w", f.Name(), err)
		}
		if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(f.Name(), ".tmpl")), []byte(text.String()), 0o644); err != nil {
			return fmt.Errorf("making the cube: %w", err)
		}
	}
	return nil
}

// released matches versions that a module proxy may have.
var released = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

// moduleVersion is the version of proctor that a new module requires; empty for
// a build that is not a release.
func moduleVersion() string {
	if v := version.Current().Version; released.MatchString(v) {
		return v
	}
	return ""
}
