package view

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/internal/redact"
)

// ExportOptions say how pages become files.
type ExportOptions struct {
	// Environ is the environment of this process, KEY=VALUE. What looks like a secret
	// there, and what the jobs' configurations keep secret, is written to no file.
	Environ []string
	// Progress, unless nil, is called after each page.
	Progress func(Exported)
}

// Exported is what an export has written.
type Exported struct {
	Pages int
	// Bytes are those of all files.
	Bytes int64
}

// NotEmptyError is the error of a directory that has files already.
type NotEmptyError struct{ Dir string }

func (e *NotEmptyError) Error() string { return fmt.Sprintf("%q is not empty", e.Dir) }

// Export writes the pages of all that the server shows as files, index.html the first of
// them, which can be opened from a disk or be served by any server of files. They load
// nothing else. dir is made; if it is there it must be empty, or a [NotEmptyError] is
// returned. It holds all pages or, after an error, none.
//
// Of a long text the first MiB and the last 256 KiB are there, of what is no text images
// alone. There are no comparisons.
func (s *Server) Export(ctx context.Context, dir string, o ExportOptions) (Exported, error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return Exported{}, &NotEmptyError{dir}
	}
	e, err := s.exporter(o)
	if err != nil {
		return Exported{}, err
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return Exported{}, fmt.Errorf("making the directory of the pages: %w", err)
	}
	temp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+"-*")
	if err != nil {
		return Exported{}, fmt.Errorf("making the directory of the pages: %w", err)
	}
	defer func() { _ = os.RemoveAll(temp) }() // of an export that failed
	e.dir = temp
	if err := e.all(ctx); err != nil {
		return e.done, err
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return e.done, fmt.Errorf("making the directory of the pages: %w", err)
	}
	_ = os.Remove(dir) // an empty one
	if err := os.Rename(temp, dir); err != nil {
		return e.done, fmt.Errorf("making the directory of the pages: %w", err)
	}
	return e.done, nil
}

// exporter walks through the pages and writes them.
type exporter struct {
	server  *Server
	dir     string
	o       ExportOptions
	order   []string // addresses, in the order in which they were found
	seen    map[string]int
	secrets map[string]*redact.Set // by the address of a job, "" for what is of none
	done    Exported
}

// exporter has a server for pages that stay.
func (s *Server) exporter(o ExportOptions) (*exporter, error) {
	pages, err := parsePages(true)
	if err != nil {
		return nil, err
	}
	still := &Server{o: s.o, dirs: s.dirs, pages: pages, mux: http.NewServeMux(), kept: newKept(), still: true, names: map[string][]string{}}
	still.routes()
	return &exporter{server: still, o: o, seen: map[string]int{}, secrets: map[string]*redact.Set{}}, nil
}

func (e *exporter) all(ctx context.Context) error {
	e.follow("/")
	for i := 0; i < len(e.order); i++ {
		if err := e.page(ctx, e.order[i]); err != nil {
			return err
		}
		if e.o.Progress != nil {
			e.o.Progress(e.done)
		}
	}
	return nil
}

// follow makes sure that an address is looked at, and returns its place in that order.
func (e *exporter) follow(address string) int {
	n, ok := e.seen[address]
	if !ok {
		n = len(e.order)
		e.seen[address] = n
		e.order = append(e.order, address)
	}
	return n
}

// recorder keeps an answer of the server.
type recorder struct {
	failed error // why the page says that there is none
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *recorder) Header() http.Header { return a.header }

func (a *recorder) WriteHeader(status int) { a.status = status }

func (a *recorder) Write(data []byte) (int, error) {
	n, err := a.body.Write(data)
	return n, err //nolint:wrapcheck // it is never one
}

func (a *recorder) isPage() bool {
	return strings.HasPrefix(a.header.Get("Content-Type"), "text/html")
}

// ask is a request to the server.
func (e *exporter) ask(ctx context.Context, address string) (*recorder, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("exporting %s: %w", address, err)
	}
	a := &recorder{header: http.Header{}, status: http.StatusOK}
	e.server.failed = func(err error) { a.failed = err }
	e.server.mux.ServeHTTP(a, r)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("exporting the pages: %w", err)
	}
	return a, nil
}

// page writes one page, or a file that a page shows.
func (e *exporter) page(ctx context.Context, address string) error {
	a, err := e.ask(ctx, address)
	if err != nil {
		return err
	}
	t, ok := e.target(address)
	if !ok {
		return fmt.Errorf("exporting %s: it has no place", address)
	}
	data := a.body.Bytes()
	switch {
	case a.isPage():
		if data, err = e.html(address, t.file, data); err != nil {
			return err
		}
		e.done.Pages++
	case a.status != http.StatusOK, t.image && !isImage(t.file, data):
		return nil // a picture that cannot be shown
	}
	file := filepath.Join(e.dir, filepath.FromSlash(t.file))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("writing the pages: %w", err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return fmt.Errorf("writing the pages: %w", err)
	}
	e.done.Bytes += int64(len(data))
	return nil
}

// isImage reports whether data begins as an image of the name's kind does, so that no
// server takes it for a page.
func isImage(name string, data []byte) bool {
	return http.DetectContentType(data) == images[strings.ToLower(path.Ext(name))]
}

// linked are the addresses in a page. Templates write them so, and no text can: its
// quotes are escaped.
var linked = regexp.MustCompile(`(href|src|action)="([^"]*)"`)

// html makes the addresses of a page relative, and takes secrets out.
func (e *exporter) html(address, file string, page []byte) ([]byte, error) {
	page = linked.ReplaceAllFunc(page, func(found []byte) []byte {
		m := linked.FindSubmatch(found)
		to := html.UnescapeString(string(m[2]))
		if !strings.HasPrefix(to, "/") {
			return found
		}
		t, ok := e.target(to)
		if !ok {
			return nil // a link without an address is text
		}
		e.follow(t.address)
		rel, err := filepath.Rel(filepath.FromSlash(path.Dir(file)), filepath.FromSlash(t.file))
		if err != nil {
			return nil
		}
		return []byte(string(m[1]) + `="` + html.EscapeString(escapePath(filepath.ToSlash(rel))+t.rest) + `"`)
	})
	return withoutSecrets(page, e.secretsOf(address))
}

// target is where an address leads in an export.
type target struct {
	address string // what is followed
	file    string // where it is
	rest    string // what pages themselves do with an address: a query and a fragment
	image   bool
}

// wholeSlices is how many parts of a file are there.
const wholeSlices = 4

// target is where an address of the server leads; not ok for what is not exported.
func (e *exporter) target(address string) (t target, ok bool) {
	u, parts, err := split(address)
	if err != nil {
		return t, false
	}
	q, kept := u.Query(), url.Values{}
	secrets := e.secretsOf(u.EscapedPath())
	folder := fileName(parts, secrets)
	switch kind := kindOf(parts); {
	case kind == kindStatic:
		return target{address: u.EscapedPath(), file: folder}, true
	case isPicture(kind, folder):
		t.file, t.image = folder, true
	case kind == kindCompare:
		if q.Get("sort") == sortDifference { // which it is without it
			q.Del("sort")
		}
		q, kept = url.Values{}, q
		t.file = path.Join(folder, withSum("page.html", kept.Encode()))
	case kind == kindList, kind == kindJob, kind == kindTrial:
		t.file = path.Join(folder, "index.html")
	case kind == kindFile && !isKept(q.Get("at")):
		return t, false
	default:
		chosenBy, several := parameters[kind]
		if !several || kind != kindFile && len(parts) > 6 {
			return t, false
		}
		t.file = path.Join(folder, variant(q, kept, secrets, chosenBy...))
	}
	t.complete(u, kept, q)
	return t, true
}

// complete divides an address into what chooses the page and what the page does with it.
func (t *target) complete(u *url.URL, kept, rest url.Values) {
	t.address = u.EscapedPath()
	if len(kept) > 0 {
		t.address += "?" + kept.Encode()
	}
	if len(rest) > 0 {
		t.rest = "?" + rest.Encode()
	}
	if u.Fragment != "" {
		t.rest += "#" + u.EscapedFragment()
	}
}

// parameters choose one of the pages at an address of a kind.
var parameters = map[string][]string{kindTrajectory: {"file", "from"}, kindRecording: {"file"}, kindEpisode: {"from"}, kindFile: {"at"}}

// isPicture reports whether an address of a kind leads to one: it is a trial's own file, or
// was observed in an episode.
func isPicture(kind, name string) bool {
	return (kind == kindRaw || kind == kindEpisode) && images[strings.ToLower(path.Ext(name))] != ""
}

// isKept reports whether the part of a file that begins there is exported.
func isKept(at string) bool {
	n, err := strconv.ParseInt(at, 10, 64)
	return at == "" || at == "end" || err == nil && n < wholeSlices*sliceSize
}

// variant is the name of the file of a page that the parameters choose. They are moved to
// kept.
func variant(q, kept url.Values, secrets *redact.Set, parameters ...string) string {
	name := ""
	for _, p := range parameters {
		if v := q.Get(p); v != "" {
			kept.Set(p, v)
			name += "-" + p + "-" + fileName([]string{v}, secrets)
		}
		q.Del(p)
	}
	if name == "" {
		return "index.html"
	}
	return strings.TrimPrefix(name, "-") + ".html"
}

// fileName is the path of a file for an address. Names with secrets are told apart like
// all that are not safe.
func fileName(parts []string, secrets *redact.Set) string {
	safe := make([]string, len(parts))
	for i, p := range parts {
		safe[i] = safeName(p)
		if secrets.Has(p) {
			safe[i] = withSum(safeName(secrets.String(p)), p)
		}
	}
	return path.Join(safe...)
}

// notSafe is what not every system, server and browser takes for part of a name.
var notSafe = regexp.MustCompile(`[^A-Za-z0-9._-]+|^\.`)

// safeName is a name for a file, another one for each name.
func safeName(name string) string {
	const longest = 100
	safe := notSafe.ReplaceAllString(name, "_")
	if safe == name && len(name) <= longest {
		return name
	}
	return withSum(safe, name)
}

// withSum is a safe name that says which one it stands for.
func withSum(safe, name string) string {
	const longest = 70
	sum := sha256.Sum256([]byte(name))
	ext := path.Ext(safe)
	if len(ext) > 10 || ext == "." {
		ext = ""
	}
	safe = strings.TrimSuffix(safe, ext)
	return safe[:min(len(safe), longest)] + "-" + hex.EncodeToString(sum[:6]) + ext
}

// errSecret is the error of a page that cannot be written without a secret.
var errSecret = errors.New("a secret cannot be taken out of it")

// between are the texts and the values of attributes of a page.
var between = regexp.MustCompile(`>[^<]+<|="[^"]*"`)

// withoutSecrets takes secrets out of a page, also those that are spelled otherwise in
// HTML.
func withoutSecrets(page []byte, secrets *redact.Set) ([]byte, error) {
	if !secrets.Has(html.UnescapeString(string(page))) {
		return page, nil
	}
	page = between.ReplaceAllFunc(page, func(found []byte) []byte {
		n := 1 // what stands before the text
		if found[0] == '=' {
			n = 2
		}
		text := html.UnescapeString(string(found[n : len(found)-1]))
		if !secrets.Has(text) {
			return found
		}
		return []byte(string(found[:n]) + html.EscapeString(secrets.String(text)) + string(found[len(found)-1:]))
	})
	if secrets.Has(html.UnescapeString(string(page))) {
		return nil, errSecret
	}
	return page, nil
}
