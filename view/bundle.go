package view

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/internal/atomicfile"
)

// ManyPagesError is the error of jobs that are to become one page.
type ManyPagesError struct{ Dir string }

func (e *ManyPagesError) Error() string {
	return fmt.Sprintf("%q is not a trial or a trajectory: jobs are more than one page", e.Dir)
}

// mostBundled bounds what one page holds, in bytes. What is more is left out and said.
const mostBundled = 24 << 20

// ExportPage writes what is shown of the trials and the trajectories that were given
// themselves as one page that needs nothing beside it: their pages, steps, images and the
// beginnings of their files, one after the other. The file may be there; it is replaced.
// The error is a [ManyPagesError] where a job or a directory of jobs was given.
func (s *Server) ExportPage(ctx context.Context, file string, o ExportOptions) (Exported, error) {
	e, err := s.exporter(o)
	if err != nil {
		return Exported{}, err
	}
	b := &bundle{exporter: e, left: mostBundled}
	for i, d := range s.dirs {
		if d.trial == "" && d.file == "" {
			return Exported{}, &ManyPagesError{d.path}
		}
		b.scope = append(b.scope, d.href(i))
		b.number(s.first(i))
	}
	page, err := b.page(ctx)
	if err != nil {
		return Exported{}, err
	}
	if err := atomicfile.Write(file, page, 0o644); err != nil {
		return Exported{}, fmt.Errorf("writing the page: %w", err)
	}
	return Exported{Pages: 1, Bytes: int64(len(page))}, nil
}

// bundle makes one page of several.
type bundle struct {
	*exporter
	scope []string // beginnings of the addresses that are part of it
	left  int      // how much more it may hold
}

// number is the part of the page that an address becomes; not ok for one that is not part
// of it.
func (b *bundle) number(address string) (n int, ok bool) {
	u, parts, err := split(address)
	if err != nil {
		return 0, false
	}
	q := u.Query()
	address = u.EscapedPath()
	switch kindOf(parts) {
	case kindTrajectory:
		address = query(address, "file", q.Get("file"), "from", q.Get("from"))
	case kindEpisode:
		if address = query(address, "from", q.Get("from")); len(parts) > 6 { // a picture
			return 0, false
		}
	case kindTrial, kindFile:
	default:
		return 0, false
	}
	for _, s := range b.scope {
		if address == s || strings.HasPrefix(address, s+"/") {
			return b.follow(address), true
		}
	}
	return 0, false
}

// page asks for one part after the other, as long as parts lead to more.
func (b *bundle) page(ctx context.Context) ([]byte, error) {
	var frame []byte
	var all bytes.Buffer
	for n := 0; n < len(b.order); n++ {
		a, err := b.ask(ctx, b.order[n])
		if err != nil {
			return nil, err
		}
		if !a.isPage() {
			return nil, fmt.Errorf("exporting %s: it is no page", b.order[n])
		}
		if n < len(b.scope) && a.failed != nil {
			return nil, a.failed // of what was asked for
		}
		page := a.body.Bytes()
		if n == 0 {
			frame = page
		}
		part, err := b.part(ctx, n, page)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&all, `<article class="leaf" id="p%d">`+"\n%s</article>\n", n, part)
		b.done.Bytes += int64(len(part))
		if b.done.Pages++; b.o.Progress != nil {
			b.o.Progress(b.done)
		}
	}
	frame, err := withoutSecrets(frame, b.secretsOf(b.order[0]))
	if err != nil {
		return nil, err
	}
	return b.within(frame, all.Bytes())
}

// folded is a part that is opened by whoever wants to see it.
func folded(name string, part []byte) []byte {
	return []byte("<details><summary>" + html.EscapeString(label(name)) + "</summary>\n" + string(part) + "</details>\n")
}

// The parts of a page that another one takes over.
var (
	mainPart = regexp.MustCompile(`(?s)<main id="main" tabindex="-1">\n(.*)\n</main>`)
	named    = regexp.MustCompile(`\b(id|for|aria-labelledby)="([^"]*)"`)
	// notAlone is what means nothing without a server or without other trials.
	notAlone = regexp.MustCompile(`(?s)<form class="search".*?</form>|<nav class="turn" aria-label="Other trials">.*?</nav>|<p class="recorded">.*?</p>`)
)

// errFrame is the error of templates that are not what this file knows of them.
var errFrame = errors.New("the page has another form than expected")

// part is the n-th of the page: what a page of its own has, with names of its own.
func (b *bundle) part(ctx context.Context, n int, page []byte) ([]byte, error) {
	m := mainPart.FindSubmatch(page)
	if m == nil {
		return nil, errFrame
	}
	text := notAlone.ReplaceAll(m[1], nil)
	prefix := "p" + strconv.Itoa(n) + "-"
	text = named.ReplaceAll(text, []byte(`${1}="`+prefix+`${2}"`))
	var failed error
	text = linked.ReplaceAllFunc(text, func(found []byte) []byte {
		attribute, to := string(linked.FindSubmatch(found)[1]), html.UnescapeString(string(linked.FindSubmatch(found)[2]))
		if strings.HasPrefix(to, "#") {
			return []byte(attribute + `="#` + prefix + html.EscapeString(to[1:]) + `"`)
		}
		if attribute == "src" {
			data, err := b.image(ctx, to)
			failed = errors.Join(failed, err)
			return []byte(data)
		}
		other, ok := b.number(to)
		if !ok {
			return nil
		}
		at := "p" + strconv.Itoa(other)
		if _, fragment, ok := strings.Cut(to, "#"); ok && fragment != "trials" {
			at += "-" + fragment
		}
		return []byte(`href="#` + html.EscapeString(at) + `"`)
	})
	if failed != nil {
		return nil, failed
	}
	if len(text) > b.left {
		return []byte(`<p class="empty">This is left out: the page would be too large.</p>` + "\n"), nil
	}
	b.left -= len(text)
	if _, parts, err := split(b.order[n]); err == nil && kindOf(parts) == kindFile {
		text = folded(path.Join(parts[6:]...), text)
	}
	return withoutSecrets(text, b.secretsOf(b.order[n]))
}

// image is a picture within the page.
func (b *bundle) image(ctx context.Context, address string) (attribute string, err error) {
	t, ok := b.target(address)
	if !ok {
		return "", nil
	}
	a, err := b.ask(ctx, t.address)
	if err != nil {
		return "", err
	}
	if !isImage(t.file, a.body.Bytes()) || a.body.Len() > b.left {
		return "", nil
	}
	return `src="data:` + a.header.Get("Content-Type") + ";base64," + base64.StdEncoding.EncodeToString(a.body.Bytes()) + `"`, nil
}

// What a page loads, and its policy.
var (
	styleLink  = regexp.MustCompile(`<link rel="stylesheet" href="[^"]*">`)
	scriptLink = regexp.MustCompile(`<script src="[^"]*" defer></script>\n`)
	iconLink   = regexp.MustCompile(`<link rel="icon"[^>]*>\n`)
	markImage  = regexp.MustCompile(`<img src="[^"]*mark\.svg[^"]*"[^>]*>`)
	brandLink  = regexp.MustCompile(`<a class="brand"[^>]*>(.*?)</a>`)
	wayPart    = regexp.MustCompile(`(?s)<nav class="way".*?</nav>`)
	policyMeta = regexp.MustCompile(`(<meta http-equiv="Content-Security-Policy" content=)"[^"]*">`)
)

// within puts the parts into a page, with its style and its script, which alone may run.
func (b *bundle) within(frame, parts []byte) ([]byte, error) {
	css, err := files.ReadFile("static/view.css")
	if err != nil {
		return nil, fmt.Errorf("reading the pages: %w", err)
	}
	js, err := files.ReadFile("static/view.js")
	if err != nil {
		return nil, fmt.Errorf("reading the pages: %w", err)
	}
	page := frame
	for _, change := range []struct {
		of *regexp.Regexp
		by string
	}{
		{policyMeta, `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src ` + sourceOf(js) + `; style-src ` + sourceOf(css) + `; img-src data:; base-uri 'none'">`},
		{styleLink, "<style>" + string(css) + "</style>"}, {scriptLink, ""}, {iconLink, ""}, {markImage, ""}, {brandLink, `<span class="brand">proctor</span>`}, {wayPart, ""},
		{mainPart, `<main id="main" tabindex="-1">` + "\n" + string(parts) + "</main>"},
	} {
		if change.of != wayPart && !change.of.Match(page) {
			return nil, errFrame
		}
		page = change.of.ReplaceAllLiteral(page, []byte(change.by))
	}
	end := []byte("</body>")
	at := bytes.LastIndex(page, end)
	if at < 0 {
		return nil, errFrame
	}
	return bytes.Join([][]byte{page[:at], []byte("<script>"), js, []byte("</script>\n"), page[at:]}, nil), nil
}

// sourceOf is how a policy names a script or a style by its content.
func sourceOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
