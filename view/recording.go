package view

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/proctor-run/proctor/internal/cast"
)

// recordingPage is a moment of a terminal's recording. Its script plays it.
type recordingPage struct {
	Frame   frame
	Name    string
	Raw     string
	Problem string
	Now     screenFrame
	Number  int // of the moment, from 1
	Count   int // of moments
	Took    string
	Address string        // of moments, for the script
	All     []screenFrame // the moments, on a page that stays
	Turns   turns
}

// screenFrame is what a terminal shows from a time on.
type screenFrame struct {
	At    float64 // in seconds, to three places
	Since string
	Rows  []screenRow
}

type screenRow []screenRun

// screenRun is text with the styles that it has.
type screenRun struct{ Text, Style string }

const (
	// framesAtOnce is how many moments the script asks for.
	framesAtOnce = 100
	// drawLimit bounds how long a recording is drawn: a few bytes can be much work.
	drawLimit = 20 * time.Second
	// mostKeptMoments and mostKeptScreen, in bytes, bound what a page that stays has.
	mostKeptMoments = 2000
	mostKeptScreen  = 4 << 20
)

// isRecording reports whether a file is called as recordings are.
func isRecording(name string) bool { return strings.EqualFold(path.Ext(name), ".cast") }

// recordingOf reads the recording that a request names, and says where its trial is.
func (s *Server) recordingOf(r *http.Request) (rec *cast.Recording, p *recordingPage, err error) {
	at, trial, dir, err := s.trialOf(r)
	if err != nil {
		return nil, nil, err
	}
	name := r.URL.Query().Get("file")
	if !isRecording(name) {
		return nil, nil, errNoPage
	}
	f, _, err := openFile(dir, name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	if rec, err = cast.Read(f); err != nil {
		return nil, nil, &badRequestError{label(name) + ": " + err.Error()}
	}
	here := at.trialHref(trial)
	return rec, &recordingPage{
		Frame: frame{Title: "Recording", Crumbs: append(s.jobCrumbs(at), crumb{label(trial), here})}, Name: label(name),
		Raw: here + "/raw/" + escapePath(name), Address: here + "/recording", Count: rec.Len(), Problem: rec.Problem, Took: seconds(rec.Seconds),
	}, nil
}

// serveRecording shows one moment.
func (s *Server) serveRecording(w http.ResponseWriter, r *http.Request) error {
	rec, p, err := s.recordingOf(r)
	if err != nil {
		return err
	}
	n, err := momentOf(r, rec)
	if err != nil {
		return err
	}
	frames, err := draw(r.Context(), rec, n, 1)
	if err != nil {
		return err
	}
	if len(frames) > 0 {
		p.Now, p.Number = frames[0], n+1
	}
	if s.still {
		if err := p.keepAll(r.Context(), rec); err != nil {
			return err
		}
	}
	name := r.URL.Query().Get("file")
	p.turn(n, func(n int) string { return query(p.Address, "file", name, "moment", strconv.Itoa(n+1)) })
	p.Address = query(p.Address+"/moments", "file", name)
	s.render(w, http.StatusOK, "recording", p)
	return nil
}

// keepAll puts the moments into the page, as many as there is room for.
func (p *recordingPage) keepAll(ctx context.Context, rec *cast.Recording) (err error) {
	if p.All, err = draw(ctx, rec, 0, mostKeptMoments); err != nil {
		return err
	}
	size := 0
	for i, f := range p.All {
		for _, row := range f.Rows {
			for _, run := range row {
				size += len(run.Text) + len(run.Style)
			}
		}
		if size > mostKeptScreen {
			p.All = p.All[:i]
			break
		}
	}
	if n := len(p.All); n < p.Count {
		p.Problem, p.Count = strings.TrimPrefix(p.Problem+"; the first "+count(n, "moment")+" of "+strconv.Itoa(p.Count)+" are here", "; "), n
	}
	return nil
}

// serveMoments answers with the moments from one on, for a player that is there already.
func (s *Server) serveMoments(w http.ResponseWriter, r *http.Request) error {
	rec, _, err := s.recordingOf(r)
	if err != nil {
		return err
	}
	n, err := momentOf(r, rec)
	if err != nil {
		return err
	}
	frames, err := draw(r.Context(), rec, n, framesAtOnce)
	if err != nil {
		return err
	}
	s.renderPart(w, "recording", "moments", frames)
	return nil
}

// momentOf is the place, from 0, of the moment that a request wants to see: by its number
// or by its time in seconds.
func momentOf(r *http.Request, rec *cast.Recording) (int, error) {
	q := r.URL.Query()
	if text := q.Get("at"); text != "" {
		at, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, &badRequestError{"at: expected a number of seconds"}
		}
		return rec.FrameAt(at), nil
	}
	n, err := strconv.Atoi(cmp.Or(q.Get("moment"), "1"))
	if err != nil || n < 1 {
		return 0, &badRequestError{"moment: expected its number"}
	}
	return min(n, max(rec.Len(), 1)) - 1, nil
}

var errMuchWork = errors.New("the recording takes too long to draw: save it and play it with another program")

func draw(ctx context.Context, rec *cast.Recording, from, count int) ([]screenFrame, error) {
	ctx, stop := context.WithTimeoutCause(ctx, drawLimit, errMuchWork)
	defer stop()
	frames, err := rec.Frames(ctx, from, count)
	if err != nil {
		return nil, err
	}
	out := make([]screenFrame, len(frames))
	for i, f := range frames {
		out[i] = screenFrame{At: f.At, Since: "+" + seconds(f.At)}
		for _, row := range f.Rows {
			shown := make(screenRow, len(row))
			for k, run := range row {
				shown[k] = screenRun{plain(run.Text), styleOf(&run)}
			}
			out[i].Rows = append(out[i].Rows, shown)
		}
	}
	return out, nil
}

// styleOf has a class for each thing that a run is.
func styleOf(r *cast.Run) string {
	var classes []string
	if r.Fore >= 0 {
		classes = append(classes, "fore-"+strconv.Itoa(r.Fore))
	}
	if r.Back >= 0 {
		classes = append(classes, "back-"+strconv.Itoa(r.Back))
	}
	for _, is := range []struct {
		it   bool
		name string
	}{
		{r.Bold, "bold"}, {r.Dim, "dim"}, {r.Italic, "italic"}, {r.Underline, "underline"}, {r.Reverse, "reverse"}, {r.Conceal, "conceal"}, {r.Strikethrough, "strike"},
	} {
		if is.it {
			classes = append(classes, is.name)
		}
	}
	return strings.Join(classes, " ")
}

// turn links to other moments.
func (p *recordingPage) turn(n int, href func(n int) string) {
	p.Turns = turns{What: "Moments", From: strconv.Itoa(p.Number), To: strconv.Itoa(p.Count)}
	if n > 0 {
		p.Turns.First, p.Turns.Before = &link{"first", href(0)}, &link{"earlier", href(n - 1)}
	}
	if n+1 < p.Count {
		p.Turns.After, p.Turns.Last = &link{"later", href(n + 1)}, &link{"last", href(p.Count - 1)}
	}
}
