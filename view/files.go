package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/jobdir/scan"
)

type fileRow struct {
	Name, Href, Raw, Size string
	path                  string // as the disk has it
}

// mostFiles is how many files of a trial are listed.
const mostFiles = 400

// filesOf lists the files of a trial; more is how many are not listed.
func filesOf(dir, href string) (rows []fileRow, more int, err error) {
	root, err := bounded.OpenDir(dir)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = root.Close() }()
	looked := 0
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if looked++; err != nil || looked > 50*mostFiles {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		if len(rows) == mostFiles {
			more++
			return nil
		}
		row := fileRow{path: name, Name: label(name), Href: href + "/files/" + escapePath(name), Raw: href + "/raw/" + escapePath(name)}
		if info, err := d.Info(); err == nil {
			row.Size = size(info.Size())
		}
		rows = append(rows, row)
		return nil
	})
	return rows, more, err
}

// trialsOf are the names of a job's trials, in order.
func (s *Server) trialsOf(dir string) []string {
	if !s.still {
		return trialsOf(dir)
	}
	if _, ok := s.names[dir]; !ok {
		s.names[dir] = trialsOf(dir)
	}
	return s.names[dir]
}

func trialsOf(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // who asks has read the job before
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() || !isName(e.Name()) {
			continue
		}
		for _, file := range []string{scan.ResultFile, scan.ConfigFile} {
			if _, err := os.Lstat(filepath.Join(dir, e.Name(), file)); err == nil {
				names = append(names, e.Name())
				break
			}
		}
	}
	slices.Sort(names)
	return names
}

// filePage is a part of a file as text.
type filePage struct {
	Frame  frame
	Name   string
	Size   string
	Raw    string
	Text   string
	Lines  []textLine
	Turns  turns
	Binary bool
	Query  string
	Href   string
	Found  int // lines with Query in this part
	// Others are the parts with Query of a file that has several, this one among them.
	Others []choice
	Unread string // what of the file was not searched

	// Besides are other attempts at the task, With the one that the lines are compared
	// with; Partly: only the beginnings are.
	Besides        []choice
	With, WithHref string
	Partly         bool
	Added, Removed int // lines
}

type textLine struct {
	N    int
	Text string
	Hit  bool
	// Style is that of a line of a difference.
	Style string
}

// sliceSize is how much of a file a page shows.
const sliceSize = 256 << 10

// longestLine is how much of a line is shown, in bytes.
const longestLine = 8 << 10

func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) error {
	at, trial, dir, err := s.trialOf(r)
	if err != nil {
		return err
	}
	name := r.PathValue("path")
	href := at.trialHref(trial) + "/files/" + escapePath(name)
	p := &filePage{
		Frame: frame{Title: label(path.Base(name)), Crumbs: append(s.jobCrumbs(at), crumb{label(trial), at.trialHref(trial)})},
		Name:  label(name), Raw: at.trialHref(trial) + "/raw/" + escapePath(name), Href: href, Query: r.URL.Query().Get("q"),
	}
	f, info, err := openFile(dir, name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	with := r.URL.Query().Get("with")
	if !s.still { // nobody could choose
		p.beside(r.Context(), s, at, trial, name, with)
	}
	if with != "" {
		p.Size = size(info.Size())
		err = p.compare(f, info.Size(), at, with, name)
	} else {
		err = p.part(r, f, info.Size(), s.still)
	}
	if err != nil {
		return err
	}
	s.render(w, http.StatusOK, "file", p)
	return nil
}

// part shows the part of a file that a request names, and finds what it searches.
func (p *filePage) part(r *http.Request, f io.ReaderAt, all int64, still bool) error {
	from, err := offsetOf(r, all)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.NewSectionReader(f, from, sliceSize))
	if err != nil {
		return fmt.Errorf("reading %s: %w", p.Name, err)
	}
	p.show(data, from, all)
	if p.Query != "" && all > sliceSize && !still {
		if err := p.search(r.Context(), f, from, all); err != nil {
			return fmt.Errorf("searching %s: %w", p.Name, err)
		}
	}
	return nil
}

// openFile opens a file of a trial, and nothing else.
func openFile(dir, name string) (*os.File, fs.FileInfo, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil, nil, errNoPage
	}
	f, err := bounded.OpenIn(dir, filepath.FromSlash(name))
	if errors.Is(err, bounded.ErrNotRegular) || errors.Is(err, bounded.ErrLeadsOut) {
		return nil, nil, errNoPage
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("reading %s: %w", name, err), f.Close())
	}
	return f, info, nil
}

// offsetOf is where a request wants to begin, at a multiple of the size of a part.
func offsetOf(r *http.Request, size int64) (int64, error) {
	last := max(size-1, 0) / sliceSize * sliceSize
	switch text := r.URL.Query().Get("at"); text {
	case "":
		return 0, nil
	case "end":
		return last, nil
	default:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return 0, &badRequestError{"at: expected a number of bytes, or end"}
		}
		return min(n/sliceSize*sliceSize, last), nil
	}
}

func (p *filePage) show(data []byte, from, all int64) {
	p.Size, p.Turns = size(all), turns{What: "Parts", From: size(from), To: size(from + int64(len(data)))}
	part := func(text string, at int64) *link {
		return &link{text, query(p.Href, "at", strconv.FormatInt(at, 10), "q", p.Query)}
	}
	if from > 0 {
		p.Turns.First, p.Turns.Before = part("first", 0), part("before", from-sliceSize)
	}
	if next := from + sliceSize; next < all {
		p.Turns.After, p.Turns.Last = part("behind", next), &link{"last", query(p.Href, "at", "end", "q", p.Query)}
	}
	if p.Binary = isBinary(data); p.Binary {
		return
	}
	patch := isPatch(p.Name)
	for line := range linesOf(data) {
		l := textLine{N: len(p.Lines) + 1, Text: line, Hit: p.hit(line)}
		if patch {
			l.Style = patchStyle(line)
		}
		if l.Hit {
			p.Found++
		}
		p.Lines = append(p.Lines, l)
	}
}

// linesOf yields the lines of a part as they are shown.
func linesOf(data []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(plain(string(data))) {
			if !yield(shortLine(strings.TrimRight(line, "\n"))) {
				return
			}
		}
	}
}

// hit reports whether a line has what is searched, in capitals or not.
func (p *filePage) hit(line string) bool {
	return p.Query != "" && strings.Contains(strings.ToLower(line), strings.ToLower(p.Query))
}

const (
	// searchedParts is how many parts of a file are searched at most, from its beginning.
	searchedParts = 1024
	// mostHits is how many parts with what is searched are listed.
	mostHits = 60
)

// search finds the parts that have what is searched, one after the other; a line that lies
// in two of them is two lines.
func (p *filePage) search(ctx context.Context, f io.ReaderAt, here, all int64) error {
	part := make([]byte, sliceSize)
	at := int64(0)
	for ; at < all && at < searchedParts*sliceSize && len(p.Others) < mostHits; at += sliceSize {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := f.ReadAt(part, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err //nolint:wrapcheck // it names the file
		}
		found := 0
		for line := range linesOf(part[:n]) {
			if p.hit(line) {
				found++
			}
		}
		if found > 0 && !isBinary(part[:n]) {
			text := size(at) + ": " + count(found, "line")
			p.Others = append(p.Others, choice{Text: text, Href: query(p.Href, "at", strconv.FormatInt(at, 10), "q", p.Query), Chosen: at == here})
		}
	}
	if at < all {
		p.Unread = size(all - at)
	}
	return nil
}

// shortLine is a line that can be shown.
func shortLine(line string) string { return shortened(line, longestLine) }

func shortLines(lines []string) []string {
	short := make([]string, len(lines))
	for i, line := range lines {
		short[i] = shortLine(plain(line))
	}
	return short
}

// isBinary reports whether the beginning of something is no text.
func isBinary(data []byte) bool {
	head := data[:min(len(data), 4096)]
	if slices.Contains(head, 0) {
		return true
	}
	wrong := 0
	for i := 0; i < len(head); {
		r, n := utf8.DecodeRune(head[i:])
		if r == utf8.RuneError && n == 1 && len(head)-i > utf8.UTFMax {
			wrong++
		}
		i += max(n, 1)
	}
	return wrong > len(head)/10
}

// images are what is shown as such, by the ends of names. Drawings that can hold scripts
// are not among them.
var images = map[string]string{".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}

// serveRaw answers with a file as it is, for saving; images of the common kinds can be
// shown in a page. Browsers never take any of it for a page or a script.
func (s *Server) serveRaw(w http.ResponseWriter, r *http.Request) error {
	_, _, dir, err := s.trialOf(r)
	if err != nil {
		return err
	}
	return sendFile(w, r, dir, r.PathValue("path"))
}

func sendFile(w http.ResponseWriter, r *http.Request, dir, name string) error {
	f, info, err := openFile(dir, name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	kind, isImage := images[strings.ToLower(path.Ext(name))]
	if !isImage {
		kind = "application/octet-stream"
		w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}))
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
	http.ServeContent(w, r, "", info.ModTime(), f)
	return nil
}
