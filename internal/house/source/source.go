// Package source reads the packages of this module, for checks on them.
package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Module begins the paths of the module's packages.
const Module = "github.com/proctor-run/proctor/"

// Package is a package of this module, checked from its source. Tests are a part
// of examples, for those who copy them, and of nothing else.
type Package struct {
	Path  string // in the module
	Main  bool
	Types *types.Package
	Uses  map[*ast.Ident]types.Object
}

// Public reports whether others can import the package and are meant to.
func (p Package) Public() bool {
	parts := strings.Split(p.Path, "/")
	return !p.Main && !slices.Contains(parts, "internal") && parts[0] != "examples"
}

// Load checks all packages of the module at root. What they import is read from
// the compiler's export data.
func Load(root string) ([]Package, error) {
	listed, exports, err := list(root)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	from := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var all []Package
	for _, p := range listed {
		checked, err := check(fset, from, p)
		if err != nil {
			return nil, fmt.Errorf("checking %s: %w", p.ImportPath, err)
		}
		all = append(all, checked)
	}
	if len(all) == 0 {
		return nil, errors.New("no packages found")
	}
	return all, nil
}

func check(fset *token.FileSet, from types.Importer, p listedPackage) (Package, error) {
	var files []*ast.File
	for _, name := range slices.Concat(p.GoFiles, p.TestGoFiles) {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return Package{}, err //nolint:wrapcheck // says which line of which file
		}
		files = append(files, f)
	}
	uses := map[*ast.Ident]types.Object{}
	cfg := types.Config{Importer: from}
	pkg, err := cfg.Check(p.ImportPath, fset, files, &types.Info{Uses: uses})
	if err != nil {
		return Package{}, err //nolint:wrapcheck // says which line of which file
	}
	return Package{Path: strings.TrimPrefix(p.ImportPath, Module), Main: p.Name == "main", Types: pkg, Uses: uses}, nil
}

// examples is where the programs and packages lie that people copy.
const examples = Module + "examples/"

type listedPackage struct {
	ImportPath, Name, Dir, Export string
	GoFiles, TestGoFiles          []string
}

// list returns the module's packages, and the files with the export data of all
// packages that they need.
func list(root string) (own []listedPackage, exports map[string]string, err error) {
	tested, err := List(root, "-f", `{{join .TestImports "\n"}}`, examples+"...")
	if err != nil {
		return nil, nil, err
	}
	args := []string{"-export", "-deps", "-json=ImportPath,Name,Dir,Export,GoFiles,TestGoFiles", Module + "..."}
	out, err := List(root, append(args, strings.Fields(tested)...)...)
	if err != nil {
		return nil, nil, err
	}
	exports = map[string]string{}
	dec := json.NewDecoder(strings.NewReader(out))
	for {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return own, exports, nil
		} else if err != nil {
			return nil, nil, fmt.Errorf("reading the package list: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if !strings.HasPrefix(p.ImportPath, examples) {
			p.TestGoFiles = nil
		}
		if strings.HasPrefix(p.ImportPath, Module) && len(p.GoFiles) > 0 {
			own = append(own, p)
		}
	}
}

// List returns what go list prints in the module at root.
func List(root string, args ...string) (string, error) {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("listing packages: %w", err)
	}
	return string(out), nil
}
