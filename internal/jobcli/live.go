package jobcli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/trial"
)

// liveRows is how many running trials are shown at most.
const liveRows = 16

// liveInterval is how often the view is redrawn: often enough for a clock in
// seconds, seldom enough to cost nothing.
const liveInterval = 200 * time.Millisecond

// liveView redraws the state of a job in place on a terminal.
type liveView struct {
	w     io.Writer
	width func() int
	now   func() time.Time

	stop chan struct{}
	done sync.WaitGroup

	mu       sync.Mutex // guards what follows
	started  time.Time
	progress job.Progress
	before   int // trials that had ended when the job was started
	running  []runningTrial
	waiting  string // the last that waits for room, and for what
	lines    int    // drawn last time
	drain    bool
}

type runningTrial struct {
	name, phase, note string
	since             time.Time
}

func newLiveView(w io.Writer, width func() int, now func() time.Time) *liveView {
	v := &liveView{w: w, width: width, now: now, started: now(), stop: make(chan struct{})}
	v.done.Go(v.loop)
	return v
}

func (v *liveView) loop() {
	ticker := time.NewTicker(liveInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			v.mu.Lock()
			v.draw()
			v.mu.Unlock()
		case <-v.stop:
			return
		}
	}
}

// close removes the view from the screen.
func (v *liveView) close() {
	close(v.stop)
	v.done.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
}

// draining tells that no new trials are started.
func (v *liveView) draining() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.drain = true
}

func (v *liveView) event(e job.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.progress = e.Progress
	switch e.Kind {
	case job.EventJobStart:
		v.started, v.before = e.Time, e.Progress.Ended.Trials
	case job.EventWarning, job.EventRetry, job.EventInstall:
		v.above(eventText(e))
	case job.EventWait:
		v.waiting = eventText(e)
	case job.EventTrial:
		if e.Trial.Kind == trial.EventStart {
			v.waiting = ""
		}
		v.trial(e)
	}
}

func (v *liveView) trial(e job.Event) {
	t := e.Trial
	i := slices.IndexFunc(v.running, func(r runningTrial) bool { return r.name == t.TrialName })
	if t.Kind == trial.EventEnd {
		if i >= 0 {
			v.running = slices.Delete(v.running, i, i+1)
		}
		v.above(eventText(e))
		return
	}
	if i < 0 {
		v.running = append(v.running, runningTrial{name: t.TrialName, since: e.Time})
		i = len(v.running) - 1
	}
	if t.Kind == trial.EventProgress {
		v.running[i].note = t.Message
		return
	}
	v.running[i].phase, v.running[i].note, v.running[i].since = phaseText(t.Kind), "", e.Time
}

// above writes a line that stays, over the view.
func (v *liveView) above(line string) {
	v.erase()
	_, _ = fmt.Fprintln(v.w, line)
	v.draw()
}

// erase takes the view away. The terminal itself writes what people type, ^C among it:
// the cursor is not where the view left it, and goes to the beginning of its line first.
func (v *liveView) erase() {
	if v.lines > 0 {
		_, _ = fmt.Fprintf(v.w, "\r\x1b[%dA\x1b[J", v.lines)
		v.lines = 0
	}
}

func (v *liveView) draw() {
	lines := v.render()
	v.erase()
	width := v.width()
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(lipgloss.NewStyle().MaxWidth(max(width-1, 20)).Render(line))
		b.WriteByte('\n')
	}
	_, _ = io.WriteString(v.w, b.String())
	v.lines = len(lines)
}

func (v *liveView) render() []string {
	p := v.progress
	elapsed := v.now().Sub(v.started)
	head := []string{console.Bold(fmt.Sprintf("%d/%d trials", p.Ended.Trials, p.Total))}
	for _, m := range p.Metrics {
		head = append(head, fmt.Sprintf("%s %s (n=%d, %d scored)", console.Clean(m.Name), shortNumber(m.Value), m.N, m.NScored))
	}
	if text := p.Spent.String(); text != "" {
		head = append(head, text)
	}
	head = append(head, console.ClockTime(elapsed)+" elapsed")
	if left, ok := v.remaining(elapsed); ok {
		head = append(head, "about "+console.ClockTime(left)+" left")
	}
	lines := []string{strings.Join(head, "  ·  ")}
	if len(p.Ended.Errors) > 0 {
		lines = append(lines, "errors: "+errorCounts(p.Ended.Errors))
	}
	if v.drain {
		lines = append(lines, "stopping: running trials are being cancelled and recorded; interrupt again to stop at once")
	}
	if v.waiting != "" && !v.drain {
		lines = append(lines, v.waiting)
	}
	for i, r := range v.running {
		if i == liveRows {
			lines = append(lines, console.Dim(fmt.Sprintf("  … and %d more", len(v.running)-i)))
			break
		}
		note := r.phase
		if r.note != "" {
			note += ", " + console.Clean(r.note)
		}
		lines = append(lines, fmt.Sprintf("  %s  %s %s", console.Clean(r.name), note, console.Dim(console.Duration(v.now().Sub(r.since).Truncate(time.Second)))))
	}
	return lines
}

// remaining guesses from the pace of the trials that this run has ended. Before the first
// nothing is known of it, and of work that is being cancelled nothing is left.
func (v *liveView) remaining(elapsed time.Duration) (time.Duration, bool) {
	p := &v.progress
	ended := p.Ended.Trials - v.before
	if v.drain || ended <= 0 || p.Ended.Trials >= p.Total {
		return 0, false
	}
	return time.Duration(float64(elapsed) / float64(ended) * float64(p.Total-p.Ended.Trials)), true
}

// shortNumber is a number with at most four significant digits; what is not finite, or not
// a number at all, stays as it is.
func shortNumber(text string) string {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return console.Clean(text)
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// errorCounts lists exception types, the most frequent first.
func errorCounts(errs map[string]int) string {
	types := make([]string, 0, len(errs))
	for t := range errs {
		types = append(types, t)
	}
	slices.SortFunc(types, func(a, b string) int {
		if d := errs[b] - errs[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for i, t := range types {
		types[i] = fmt.Sprintf("%s ×%d", console.Clean(t), errs[t])
	}
	return strings.Join(types, ", ")
}
