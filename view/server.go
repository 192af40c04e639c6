package view

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/report"
)

// Options say what is shown, and to whom.
type Options struct {
	// Dirs are directories of jobs, jobs, trials, or files that are trajectories. There is
	// at least one.
	Dirs []string
	// Zone is where times are shown; nil means UTC.
	Zone *time.Location
	// Now is the clock. It must be set.
	Now func() time.Time
	// Token, when set, must be in the first address that a browser asks for, as
	// "?token=…". Without one, requests under another name than that of the loopback
	// interface are refused, so that no page elsewhere reads through a browser.
	Token string
}

// Server is the pages as a handler of requests.
type Server struct {
	o     Options
	dirs  []directory
	pages *pages
	mux   *http.ServeMux
	kept  *kept

	// still: the pages are for files, without a server behind them, and asked for one after
	// the other. names are then the trials of jobs, by their directories, and failed is told
	// why a page is none.
	still  bool
	names  map[string][]string
	failed func(error)
}

// directory is one of Options.Dirs.
type directory struct {
	path string // absolute
	// only is the job that was given itself, and trial the trial; empty for a directory
	// of jobs.
	only, trial string
	// file is a trajectory below path that was given by itself.
	file string
}

// href is the first address of what was given, of which index is the place.
func (d directory) href(index int) string {
	switch at := (place{index: index, name: d.only}); {
	case d.file != "":
		return "/trajectories/" + strconv.Itoa(index)
	case d.trial != "":
		return at.trialHref(d.trial)
	case d.only != "":
		return at.href()
	}
	return "/"
}

// New makes a server. It is an error when a directory is not there.
func New(o Options) (*Server, error) {
	if len(o.Dirs) == 0 {
		return nil, errors.New("there is no directory to show")
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.Now == nil {
		return nil, errors.New("there is no clock")
	}
	s := &Server{o: o, mux: http.NewServeMux(), kept: newKept()}
	for _, dir := range o.Dirs {
		d, err := directoryOf(dir)
		if err != nil {
			return nil, err
		}
		s.dirs = append(s.dirs, d)
	}
	var err error
	if s.pages, err = parsePages(false); err != nil {
		return nil, err
	}
	s.routes()
	return s, nil
}

func directoryOf(dir string) (directory, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return directory{}, fmt.Errorf("locating %q: %w", dir, err)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return directory{path: filepath.Dir(path), file: filepath.Base(path)}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return directory{}, fmt.Errorf("reading the jobs: %w", err)
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return slices.Contains(names, e.Name()) })
	}
	up := filepath.Dir(path)
	switch {
	case !has(scan.ConfigFile, scan.ResultFile): // a directory of jobs has none
		return directory{path: path}, nil
	case has("agent"): // where each trial's agent leaves its logs
		return directory{path: filepath.Dir(up), only: filepath.Base(up), trial: filepath.Base(path)}, nil
	}
	return directory{path: up, only: filepath.Base(path)}, nil
}

func (s *Server) routes() {
	page := func(pattern string, serve func(http.ResponseWriter, *http.Request) error) {
		s.mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := serve(w, r); err != nil {
				s.fail(w, r, err)
			}
		})
	}
	page("/{$}", s.serveJobs)
	page("/jobs/{dir}/{job}", s.serveJob)
	page("/jobs/{dir}/{job}/changes", s.serveChanges)
	page("/jobs/{dir}/{job}/rows", s.serveRows)
	page("/jobs/{dir}/{job}/trials/{trial}", s.serveTrial)
	page("/jobs/{dir}/{job}/trials/{trial}/trajectory", s.serveTrajectory)
	page("/jobs/{dir}/{job}/trials/{trial}/episode", s.serveEpisode)
	page("/jobs/{dir}/{job}/trials/{trial}/episode/{image}", s.serveEpisodeImage)
	page("/jobs/{dir}/{job}/trials/{trial}/recording", s.serveRecording)
	page("/jobs/{dir}/{job}/trials/{trial}/recording/moments", s.serveMoments)
	page("/jobs/{dir}/{job}/trials/{trial}/files/{path...}", s.serveFile)
	page("/jobs/{dir}/{job}/trials/{trial}/raw/{path...}", s.serveRaw)
	page("/trajectories/{n}/trajectory", s.serveBare)
	page("/trajectories/{n}/raw/{path...}", s.serveBareRaw)
	page("/compare", s.serveCompare)
	page("/static/{name}", s.serveStatic)
	page("/", func(http.ResponseWriter, *http.Request) error { return errNoPage })
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	// No script but the server's own runs, and no page is shown within another.
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !s.admits(w, r) {
		return
	}
	s.mux.ServeHTTP(w, r)
}

// tokenCookie keeps the token of a browser that has shown it.
const tokenCookie = "proctor_view"

// admits reports whether a request may be answered; otherwise it was.
func (s *Server) admits(w http.ResponseWriter, r *http.Request) bool {
	if s.o.Token == "" {
		if isLoopback(r.Host) {
			return true
		}
		http.Error(w, "This server answers under the name localhost alone.", http.StatusForbidden)
		return false
	}
	if cookie, err := r.Cookie(tokenCookie); err == nil && s.isToken(cookie.Value) {
		return true
	}
	query := r.URL.Query()
	if !s.isToken(query.Get("token")) {
		http.Error(w, "Open the address that proctor view printed: it has the token.", http.StatusForbidden)
		return false
	}
	http.SetCookie(w, &http.Cookie{Name: tokenCookie, Value: s.o.Token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	query.Del("token") // it stays out of the history and of links that are copied
	to := *r.URL
	to.RawQuery = query.Encode()
	http.Redirect(w, r, to.RequestURI(), http.StatusSeeOther)
	return false
}

func (s *Server) isToken(text string) bool {
	want, got := sha256.Sum256([]byte(s.o.Token)), sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

func isLoopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.Trim(name, "[]")
	ip := net.ParseIP(name)
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}

// errNoPage is the error of an address that leads nowhere.
var errNoPage = errors.New("there is no such page")

// fail answers with an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if s.failed != nil {
		s.failed(err)
	}
	status := http.StatusInternalServerError
	switch {
	case r.Context().Err() != nil:
		return // nobody waits for it
	case errors.Is(err, errNoPage), errors.Is(err, os.ErrNotExist), isType[*report.NotFoundError](err):
		status = http.StatusNotFound
	case isType[*badRequestError](err):
		status = http.StatusBadRequest
	}
	s.render(w, status, "error", &errorPage{Frame: frame{Title: http.StatusText(status)}, Text: s.text(err)})
}

func isType[E error](err error) bool { _, ok := errors.AsType[E](err); return ok }

// badRequestError is the error of an address with a part that means nothing.
type badRequestError struct{ text string }

func (e *badRequestError) Error() string { return e.text }

// text is an error for people, without the place of the directories on this machine.
func (s *Server) text(err error) string {
	text := err.Error()
	for _, d := range s.dirs {
		text = strings.ReplaceAll(text, d.path+string(filepath.Separator), "")
	}
	return text
}

// place is a job that an address names.
type place struct {
	index int    // of its directory
	name  string // of the job
	path  string
}

func (p place) href() string { return "/jobs/" + strconv.Itoa(p.index) + "/" + escape(p.name) }

// compare is what the job is called in the address of a comparison.
func (p place) compare() string { return strconv.Itoa(p.index) + "/" + p.name }

func (p place) trialHref(trial string) string { return p.href() + "/trials/" + escape(trial) }

// jobOf is the job that the address of a request names.
func (s *Server) jobOf(r *http.Request) (place, error) {
	index, err := strconv.Atoi(r.PathValue("dir"))
	if err != nil || index < 0 || index >= len(s.dirs) {
		return place{}, errNoPage
	}
	return s.jobIn(index, r.PathValue("job"))
}

func (s *Server) jobIn(index int, name string) (place, error) {
	d := s.dirs[index]
	if !isName(name) || d.file != "" || d.only != "" && d.only != name {
		return place{}, errNoPage
	}
	return place{index: index, name: name, path: filepath.Join(d.path, name)}, nil
}

// trialOf is the trial that the address of a request names. Its directory is the job's
// own: a link that stands there is followed nowhere.
func (s *Server) trialOf(r *http.Request) (p place, trial, dir string, err error) {
	if p, err = s.jobOf(r); err != nil {
		return p, "", "", err
	}
	trial = r.PathValue("trial")
	dir = filepath.Join(p.path, trial)
	if !isName(trial) {
		return p, "", "", errNoPage
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return p, "", "", errNoPage
	}
	return p, trial, dir, nil
}

// isName reports whether a text is the name of something in a directory, and not hidden.
func isName(name string) bool {
	return filepath.IsLocal(name) && !strings.ContainsAny(name, `/\`) && !strings.HasPrefix(name, ".")
}

// Serve answers connections until ctx ends, and then those that are open for a moment
// more.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(end) // what is left is cut off with the process
	})
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the pages: %w", err)
	}
	return nil
}
