package house

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/house/source"
)

// TestDocLinks: what stands in brackets in a doc comment and looks like an exported
// name of Go is a link, as go doc understands links. The files of all platforms
// are read.
func TestDocLinks(t *testing.T) {
	t.Parallel()
	Watch(t, "../..")
	l := newLinked(t)
	found := 0
	for path := range l.listed {
		if !strings.HasPrefix(path+"/", source.Module) {
			continue
		}
		d, err := l.of(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range d.files {
			for _, c := range docComments(file) {
				n, broken := l.check(d, c)
				found += n
				for _, link := range broken {
					t.Errorf("%s: [%s] leads nowhere: link to a name that is exported, or write it plainly", place(d.fset, c, link), link)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no links were found")
	}
}

func TestBrokenLinksAreFound(t *testing.T) {
	t.Parallel()
	const text = `// Package p has [T], [*T.M], [fs.FS], [fs.FS.Open], [T.Field] and [word], but not [Lost],
// [T.N], [T.Other], [fs.Lost] or [lost.Name].
//
//	x := list[Index]
package p

import "io/fs"

// T is as [hidden] as [T.Field].
type T struct{ Field fs.FS }

// M is [M].
func (T) M() {}
`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	d, err := documentedOf(fset, []*ast.File{file}, "p")
	if err != nil {
		t.Fatal(err)
	}
	l := newLinked(t)
	var got []string
	for _, c := range docComments(file) {
		_, broken := l.check(d, c)
		for _, link := range broken {
			got = append(got, place(fset, c, link)+" "+link)
		}
	}
	want := []string{"1 Lost", "2 T.N", "2 T.Other", "2 fs.Lost", "2 lost.Name", "12 M"}
	for i, w := range want {
		if i >= len(got) || !strings.HasSuffix(got[i], "p.go:"+w) {
			t.Fatalf("broken links %q, want %q", got, want)
		}
	}
	if len(got) != len(want) {
		t.Errorf("broken links %q, want %q", got, want)
	}
}

// linked looks up what links lead to.
type linked struct {
	docs   map[string]*documented
	listed map[string]listedSource
}

type listedSource struct {
	ImportPath, Name, Dir             string
	GoFiles, CgoFiles, IgnoredGoFiles []string
}

// documented is a package as go doc sees it.
type documented struct {
	fset  *token.FileSet
	files []*ast.File
	links *comment.Parser
}

// newLinked finds the module's packages and all that they import.
func newLinked(t *testing.T) *linked {
	t.Helper()
	l := &linked{docs: map[string]*documented{}, listed: map[string]listedSource{}}
	out, err := source.List("../..", "-e", "-deps", "-json=ImportPath,Name,Dir,GoFiles,CgoFiles,IgnoredGoFiles", source.Module+"...")
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(out))
	for {
		var p listedSource
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return l
		} else if err != nil {
			t.Fatalf("reading the package list: %v", err)
		}
		l.listed[p.ImportPath] = p
	}
}

// of reads the package of a path.
func (l *linked) of(path string) (*documented, error) {
	if d, ok := l.docs[path]; ok {
		return d, nil
	}
	p, ok := l.listed[path]
	if !ok {
		return nil, fmt.Errorf("%s is not a package that the module imports", path)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if file.Name.Name == p.Name || p.Name == "" {
			files = append(files, file)
		}
	}
	d, err := documentedOf(fset, files, path)
	if err != nil {
		return nil, err
	}
	l.docs[path] = d
	return d, nil
}

// documentedOf leaves the trees as they are: comments are read from them.
func documentedOf(fset *token.FileSet, files []*ast.File, path string) (*documented, error) {
	pkg, err := doc.NewFromFiles(fset, files, path, doc.PreserveAST)
	if err != nil {
		return nil, fmt.Errorf("reading the documentation of %s: %w", path, err)
	}
	return &documented{fset: fset, files: files, links: pkg.Parser()}, nil
}

// check returns how many links a comment has, and those that lead nowhere.
func (l *linked) check(d *documented, c *ast.CommentGroup) (found int, broken []string) {
	meant := comment.Parser{
		LookupPackage: func(name string) (string, bool) { return name, true },
		LookupSym:     func(string, string) bool { return true },
	}
	for _, link := range linksOf(meant.Parse(c.Text()).Content) {
		if link.Name == "" {
			continue // a word of lower case in brackets need not be a package
		}
		found++
		if !l.resolves(d, link) {
			broken = append(broken, textOf(link))
		}
	}
	return found, broken
}

func (l *linked) resolves(d *documented, link *comment.DocLink) bool {
	if link.ImportPath == "" {
		return d.links.LookupSym(link.Recv, link.Name)
	}
	path, ok := d.links.LookupPackage(link.ImportPath)
	if !ok {
		return false
	}
	if path == "" { // the package itself
		return d.links.LookupSym(link.Recv, link.Name)
	}
	target, err := l.of(path)
	return err == nil && target.links.LookupSym(link.Recv, link.Name)
}

// linksOf returns the links of blocks, those in lists included.
func linksOf(blocks []comment.Block) []*comment.DocLink {
	var links []*comment.DocLink
	for _, block := range blocks {
		var texts []comment.Text
		switch b := block.(type) {
		case *comment.Paragraph:
			texts = b.Text
		case *comment.Heading:
			texts = b.Text
		case *comment.List:
			for _, item := range b.Items {
				links = append(links, linksOf(item.Content)...)
			}
		}
		for _, text := range texts {
			if link, ok := text.(*comment.DocLink); ok {
				links = append(links, link)
			}
		}
	}
	return links
}

func textOf(link *comment.DocLink) string {
	var b strings.Builder
	for _, text := range link.Text {
		if plain, ok := text.(comment.Plain); ok {
			b.WriteString(string(plain))
		}
	}
	return b.String()
}

// docComments are the comments of a file's package, declarations, fields and
// methods of interfaces.
func docComments(file *ast.File) []*ast.CommentGroup {
	all := []*ast.CommentGroup{file.Doc}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok {
			all = append(all, f.Doc)
			continue
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GenDecl:
				all = append(all, n.Doc)
			case *ast.TypeSpec:
				all = append(all, n.Doc, n.Comment)
			case *ast.ValueSpec:
				all = append(all, n.Doc, n.Comment)
			case *ast.Field:
				all = append(all, n.Doc, n.Comment)
			}
			return true
		})
	}
	return slices.DeleteFunc(all, func(c *ast.CommentGroup) bool { return c == nil })
}

// place is the line of a comment that has the text of a link.
func place(fset *token.FileSet, group *ast.CommentGroup, link string) string {
	at := group.Pos()
	for _, c := range group.List {
		if i := strings.Index(c.Text, "["+link+"]"); i >= 0 {
			at = c.Pos() + token.Pos(i)
			break
		}
	}
	p := fset.Position(at)
	if rel, err := filepath.Abs("../.."); err == nil {
		if name, err := filepath.Rel(rel, p.Filename); err == nil {
			p.Filename = name
		}
	}
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}
