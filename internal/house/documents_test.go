package house

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/proctor-run/proctor/internal/house/source"
)

// maxColumns is how long a line of a document may be, in characters. Rows of tables,
// blocks of code, and words that are longer, such as addresses, are excepted.
const maxColumns = 120

// changelog names what is there no longer.
const changelog = "CHANGELOG.md"

// changes are the kinds of changes that the changelog lists.
var changes = []string{"Added", "Changed", "Fixed", "Go API"}

// document is a page for people.
type document struct {
	name  string // from the root, with slashes
	lines []docLine
}

type docLine struct {
	text string
	n    int // from 1
	code bool
}

// documents reads all pages.
func documents(t *testing.T) []document {
	t.Helper()
	var all []document
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md"} {
		files, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel("../..", file)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, newDocument(filepath.ToSlash(name), string(text)))
		}
	}
	return all
}

func newDocument(name, text string) document {
	d := document{name: name}
	fenced, indented := false, false
	for i, line := range strings.Split(text, "\n") {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		// Four blanks begin a block after an empty line.
		blank := i == 0 || strings.TrimSpace(d.lines[i-1].text) == ""
		indented = strings.HasPrefix(line, "    ") && (indented || blank)
		d.lines = append(d.lines, docLine{text: line, n: i + 1, code: fenced || fence || indented})
		if fence {
			fenced = !fenced
		}
	}
	return d
}

// prose is what is not code, whole paragraphs on one line, by where they begin.
func (d document) prose() []docLine {
	var all []docLine
	open := false
	for _, line := range d.lines {
		text := strings.TrimSpace(line.text)
		if line.code || text == "" {
			open = false
			continue
		}
		if open && !strings.HasPrefix(text, "|") {
			all[len(all)-1].text += " " + text
			continue
		}
		all, open = append(all, docLine{text: text, n: line.n}), true
	}
	return all
}

// tooLong are the lines that could be shorter.
func (d document) tooLong() []int {
	var found []int
	for _, line := range d.lines {
		row := strings.HasPrefix(strings.TrimSpace(line.text), "|")
		if line.code || row || utf8.RuneCountInString(line.text) <= maxColumns {
			continue
		}
		if strings.ContainsFunc(strings.TrimSpace(line.text), unicode.IsSpace) {
			found = append(found, line.n)
		}
	}
	return found
}

func TestLinesOfDocuments(t *testing.T) {
	t.Parallel()
	for _, d := range documents(t) {
		for _, n := range d.tooLong() {
			t.Errorf("%s:%d: the line has more than %d columns", d.name, n, maxColumns)
		}
	}
	long := strings.Repeat("long line ", 20)
	d := newDocument("x.md", strings.Join([]string{long, "| " + long, "```", long, "```", strings.Repeat("a", 200), "", "    " + long, "", "* " + long, "  " + long}, "\n"))
	if got := d.tooLong(); !slices.Equal(got, []int{1, 10, 11}) {
		t.Errorf("the lines %v are found", got)
	}
}

// TestChangelog: every change has its place.
func TestChangelog(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("../..", changelog))
	if err != nil {
		t.Fatal(err)
	}
	heading := ""
	for i, line := range strings.Split(string(text), "\n") {
		if title, ok := strings.CutPrefix(line, "#"); ok {
			heading = strings.TrimSpace(strings.TrimLeft(title, "#"))
			if strings.HasPrefix(title, "## ") && !slices.Contains(changes, heading) {
				t.Errorf("%s:%d: %s is none of %q", changelog, i+1, heading, changes)
			}
		}
		if strings.HasPrefix(line, "* ") && !slices.Contains(changes, heading) {
			t.Errorf("%s:%d: the line stands under none of %q", changelog, i+1, changes)
		}
	}
}

var (
	docLink   = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	codeSpan  = regexp.MustCompile("`([^`]+)`")
	goName    = regexp.MustCompile(`(?:^|[^\w./-])([a-z][a-z0-9]*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
	pageName  = regexp.MustCompile(`\bdocs/[a-z-]+\.md\b`)
	goPackage = regexp.MustCompile("[Pp]ackage `([a-z0-9/]+)`")
)

// TestLinksOfDocuments: relative links lead to files that exist, and to headings in
// them.
func TestLinksOfDocuments(t *testing.T) {
	t.Parallel()
	all := documents(t)
	headings := map[string][]string{}
	for _, d := range all {
		headings[d.name] = d.headings()
	}
	found := 0
	for _, d := range all {
		for _, p := range d.prose() {
			for _, m := range docLink.FindAllStringSubmatch(codeSpan.ReplaceAllString(p.text, ""), -1) {
				found++
				if err := checkLink(d.name, m[1], headings); err != nil {
					t.Errorf("%s:%d: %v", d.name, p.n, err)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no links were found")
	}
	for _, broken := range []string{"lost.md", "#lost", "docs/scoring.md#lost"} {
		if checkLink("README.md", broken, headings) == nil {
			t.Errorf("%s is taken for a link that leads somewhere", broken)
		}
	}
}

func checkLink(from, link string, headings map[string][]string) error {
	if strings.Contains(link, "://") {
		return nil
	}
	file, heading, _ := strings.Cut(link, "#")
	to := from
	if file != "" {
		to = path.Join(path.Dir(from), file)
	}
	if _, err := os.Stat(filepath.Join("../..", filepath.FromSlash(to))); err != nil {
		return fmt.Errorf("the link %s leads nowhere", link)
	}
	if heading != "" && !slices.Contains(headings[to], heading) {
		return fmt.Errorf("%s has no heading %s", to, heading)
	}
	return nil
}

// TestPagesInCode: pages that comments, help and errors name exist.
func TestPagesInCode(t *testing.T) {
	t.Parallel()
	found := 0
	err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".go" {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, page := range pageName.FindAllString(string(text), -1) {
			found++
			if _, err := os.Stat(filepath.Join("../..", page)); err != nil {
				t.Errorf("%s names %s, which does not exist", file, page)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("no page is named")
	}
}

// headings are the names by which links lead to headings.
func (d document) headings() []string {
	var all []string
	for _, line := range d.lines {
		title := strings.TrimLeft(line.text, "#")
		if line.code || title == line.text {
			continue
		}
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(title)))
	}
	return all
}

// TestIndexOfDocuments: docs/README.md lists every page.
func TestIndexOfDocuments(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile("../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range documents(t) {
		if page, ok := strings.CutPrefix(d.name, "docs/"); ok && page != "README.md" && !strings.Contains(string(index), "]("+page+")") {
			t.Errorf("docs/README.md does not list %s", page)
		}
	}
}

// TestNamesOfDocuments: documents name packages and identifiers of Go that exist
// and are exported.
func TestNamesOfDocuments(t *testing.T) {
	t.Parallel()
	names := newGoNames(t)
	found := 0
	for _, d := range documents(t) {
		if d.name == changelog {
			continue
		}
		for _, p := range d.prose() {
			for _, m := range goPackage.FindAllStringSubmatch(p.text, -1) {
				if !names.paths[m[1]] {
					t.Errorf("%s:%d: there is no package %s", d.name, p.n, m[1])
				}
			}
			for _, span := range codeSpan.FindAllStringSubmatch(p.text, -1) {
				n, missing := names.check(span[1])
				found += n
				for _, name := range missing {
					t.Errorf("%s:%d: there is no exported %s", d.name, p.n, name)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no names were found")
	}
	const text = "job.Runner, &job.Runner{}, job.Runner.Trials, job.Run(ctx, os.Stdin), trial.Runner.Lost, job.Lost and lost.Name"
	if _, missing := names.check(text); !slices.Equal(missing, []string{"trial.Runner.Lost", "job.Lost", "lost.Name"}) {
		t.Errorf("the names %q are missed", missing)
	}
}

// TestNamesOfDocComments: the code that doc comments of public packages show names
// what packages have.
func TestNamesOfDocComments(t *testing.T) {
	t.Parallel()
	names, l := newGoNames(t), newLinked(t)
	found := 0
	for _, p := range packagesOfModule(t) {
		if !p.Public() {
			continue
		}
		d, err := l.of(source.Module + p.Path)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range d.files {
			for _, c := range docComments(file) {
				code := codeOf(c)
				n, missing := names.check(code)
				found += n
				for _, name := range missing {
					if pkg, _, _ := strings.Cut(name, "."); len(names.byName[pkg]) > 0 && !isVariable(code, pkg) {
						t.Errorf("%s: there is no exported %s", place(d.fset, c, name), name)
					}
				}
			}
		}
	}
	if found == 0 {
		t.Error("no names were found")
	}
}

// isVariable reports whether code defines a name as a variable.
func isVariable(code, name string) bool {
	return regexp.MustCompile(`\b` + name + `\b[\w, ]*:=`).MatchString(code)
}

// codeOf is the code that a comment shows.
func codeOf(c *ast.CommentGroup) string {
	var code strings.Builder
	for _, block := range new(comment.Parser).Parse(c.Text()).Content {
		if b, ok := block.(*comment.Code); ok {
			code.WriteString(b.Text)
		}
	}
	return code.String()
}

// goNames are the packages that documents may name things of.
type goNames struct {
	paths  map[string]bool
	byName map[string][]*types.Package
}

// importNames are the names under which packages are imported that are called like
// another one.
var importNames = map[string]string{"harborcube": "cube/cubes/harbor"}

// newGoNames finds the module's packages, and what they import of Go's own.
func newGoNames(t *testing.T) *goNames {
	t.Helper()
	names := &goNames{paths: map[string]bool{}, byName: map[string][]*types.Package{}}
	add := func(name string, p *types.Package) {
		if !slices.Contains(names.byName[name], p) {
			names.byName[name] = append(names.byName[name], p)
		}
	}
	for _, p := range packagesOfModule(t) {
		names.paths[p.Path] = true
		if !p.Main {
			add(p.Types.Name(), p.Types)
		}
		for name, of := range importNames {
			if p.Path == of {
				add(name, p.Types)
			}
		}
		for _, imported := range p.Types.Imports() {
			if first, _, _ := strings.Cut(imported.Path(), "/"); !strings.Contains(first, ".") {
				add(imported.Name(), imported)
			}
		}
	}
	return names
}

// check returns how many names a piece of code has, and those that no package has.
func (g *goNames) check(code string) (found int, missing []string) {
	for _, m := range goName.FindAllStringSubmatch(code, -1) {
		found++
		if !slices.ContainsFunc(g.byName[m[1]], func(p *types.Package) bool { return exports(p, m[2], m[3]) }) {
			missing = append(missing, strings.TrimSuffix(m[1]+"."+m[2]+"."+m[3], "."))
		}
	}
	return found, missing
}

// exports reports whether a package has a name, and that a member if it is not
// empty.
func exports(p *types.Package, name, member string) bool {
	o := p.Scope().Lookup(name)
	if o == nil || member == "" {
		return o != nil
	}
	m, _, _ := types.LookupFieldOrMethod(o.Type(), true, p, member)
	return m != nil
}
