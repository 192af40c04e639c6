package house

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
	"sync"
	"testing"
)

// loaded is a package of this module, checked from its source. Tests are a part of
// examples, for those who copy them, and of nothing else.
type loaded struct {
	path string // in the module
	main bool
	pkg  *types.Package
	uses map[*ast.Ident]types.Object
}

// public reports whether others can import the package and are meant to.
func (l loaded) public() bool {
	parts := strings.Split(l.path, "/")
	return !l.main && !slices.Contains(parts, "internal") && parts[0] != "examples"
}

// load checks all packages of the module once. What they import is read from the
// compiler's export data.
var load = sync.OnceValues(func() ([]loaded, error) {
	listed, exports, err := list()
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	from := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var all []loaded
	for _, p := range listed {
		l := loaded{path: strings.TrimPrefix(p.ImportPath, module), main: p.Name == "main", uses: map[*ast.Ident]types.Object{}}
		var files []*ast.File
		for _, name := range slices.Concat(p.GoFiles, p.TestGoFiles) {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
		cfg := types.Config{Importer: from}
		if l.pkg, err = cfg.Check(p.ImportPath, fset, files, &types.Info{Uses: l.uses}); err != nil {
			return nil, fmt.Errorf("checking %s: %w", p.ImportPath, err)
		}
		all = append(all, l)
	}
	return all, nil
})

// examples is where the programs and packages lie that people copy.
const examples = module + "examples/"

type listedPackage struct {
	ImportPath, Name, Dir, Export string
	GoFiles, TestGoFiles          []string
}

// list returns the module's packages, and the files with the export data of all
// packages that they need.
func list() (own []listedPackage, exports map[string]string, err error) {
	tested, err := golist("-f", `{{join .TestImports "\n"}}`, examples+"...")
	if err != nil {
		return nil, nil, err
	}
	args := []string{"-export", "-deps", "-json=ImportPath,Name,Dir,Export,GoFiles,TestGoFiles", module + "..."}
	out, err := golist(append(args, strings.Fields(tested)...)...)
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
		if strings.HasPrefix(p.ImportPath, module) && len(p.GoFiles) > 0 {
			own = append(own, p)
		}
	}
}

// golist runs go list at the top of the module.
func golist(args ...string) (string, error) {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("listing packages: %w", err)
	}
	return string(out), nil
}

// packagesOfModule are the loaded packages.
func packagesOfModule(t *testing.T) []loaded {
	t.Helper()
	Watch(t, "../..")
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no packages found")
	}
	return all
}
