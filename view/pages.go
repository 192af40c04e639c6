package view

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strings"
)

//go:embed pages/*.html static/*
var files embed.FS

// pages are the templates, and what they load.
type pages struct {
	byName map[string]*template.Template
	// versions of the static files are in their addresses, so that browsers may keep them.
	versions map[string]string
}

// frame is what every page has.
type frame struct {
	Title  string
	Crumbs []crumb
	// Changes is where the page learns that it is old; empty for one that does not change.
	Changes string
}

// crumb is a step of the way to a page.
type crumb struct{ Text, Href string }

// turns lead from a part of something long to the others.
type turns struct {
	What                       string // are the parts
	From, To                   string // of this one
	First, Before, After, Last *link
}

// Below are the same where a page ends.
func (t turns) Below() turns {
	t.What += " below"
	return t
}

type errorPage struct {
	Frame frame
	Text  string
}

// parsePages reads the templates that are part of the program. still is as in [Server].
func parsePages(still bool) (*pages, error) {
	p := &pages{byName: map[string]*template.Template{}, versions: map[string]string{}}
	static, err := files.ReadDir("static")
	if err != nil {
		return nil, fmt.Errorf("reading the pages: %w", err)
	}
	for _, e := range static {
		data, err := files.ReadFile("static/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the pages: %w", err)
		}
		sum := sha256.Sum256(data)
		p.versions[e.Name()] = hex.EncodeToString(sum[:6])
	}
	functions := template.FuncMap{
		"static": func(name string) string { return "/static/" + name + "?v=" + p.versions[name] },
		"count":  count,
		"still":  func() bool { return still },
		"stack":  stack,
		"kinds":  func() []string { return []string{"system", "user", "agent", "reasoning", "calls", "results"} },
	}
	for _, name := range []string{"jobs", "job", "trial", "trajectory", "episode", "file", "recording", "compare", "several", "error"} {
		t, err := template.New("frame.html").Funcs(functions).ParseFS(files, "pages/frame.html", "pages/parts.html", "pages/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("reading the pages: %w", err)
		}
		p.byName[name] = t
	}
	return p, nil
}

// render answers with a page, which is whole or not begun.
func (s *Server) render(w http.ResponseWriter, status int, name string, data any) {
	s.renderTemplate(w, status, s.pages.byName[name], data)
}

// renderPart answers with a part of a page.
func (s *Server) renderPart(w http.ResponseWriter, page, part string, data any) {
	s.renderTemplate(w, http.StatusOK, s.pages.byName[page].Lookup(part), data)
}

func (*Server) renderTemplate(w http.ResponseWriter, status int, t *template.Template, data any) {
	var text bytes.Buffer
	if err := t.Execute(&text, data); err != nil {
		http.Error(w, "The page cannot be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // whoever went away does not miss it
}

// serveStatic answers with a style or a script.
func (s *Server) serveStatic(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if _, ok := s.pages.versions[name]; !ok {
		return errNoPage
	}
	data, err := files.ReadFile("static/" + name)
	if err != nil {
		return fmt.Errorf("reading the pages: %w", err)
	}
	types := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	if r.URL.Query().Get("v") == s.pages.versions[name] {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(data)
	return nil
}

// escape makes a name part of an address.
func escape(name string) string { return url.PathEscape(name) }

// escapePath is escape for a path with slashes.
func escapePath(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = escape(p)
	}
	return strings.Join(parts, "/")
}

// stack is where each of some shares begins, one behind the other, in percent.
func stack(shares []share) []float64 {
	at := make([]float64, len(shares))
	for i := 1; i < len(shares); i++ {
		at[i] = at[i-1] + shares[i-1].Percent
	}
	return at
}
