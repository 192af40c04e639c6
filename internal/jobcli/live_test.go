package jobcli

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/trial"
)

// screen is what a terminal shows of what the view writes: lines, the cursor, and the
// sequences that go up and erase.
type screen struct {
	lines []string
	x, y  int
}

func (s *screen) Write(p []byte) (int, error) {
	for text := string(p); text != ""; {
		switch {
		case text[0] == '\n':
			s.x, s.y, text = 0, s.y+1, text[1:]
		case text[0] == '\r':
			s.x, text = 0, text[1:]
		case strings.HasPrefix(text, "\x1b["):
			end := strings.IndexFunc(text, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' })
			s.command(text[2:end], text[end])
			text = text[end+1:]
		default:
			r := []rune(text)[0]
			s.put(r)
			text = text[len(string(r)):]
		}
	}
	return len(p), nil
}

func (s *screen) command(number string, name byte) {
	switch name {
	case 'A':
		n, _ := strconv.Atoi(number) // the view writes one
		s.y -= n
	case 'J':
		s.fill()
		s.lines = s.lines[:s.y+1]
		s.lines[s.y] = string([]rune(s.lines[s.y])[:min(s.x, len([]rune(s.lines[s.y])))])
	}
}

func (s *screen) fill() {
	for len(s.lines) <= s.y {
		s.lines = append(s.lines, "")
	}
}

func (s *screen) put(r rune) {
	s.fill()
	line := []rune(s.lines[s.y])
	for len(line) <= s.x {
		line = append(line, ' ')
	}
	line[s.x] = r
	s.lines[s.y], s.x = string(line), s.x+1
}

func (s *screen) text() string { return strings.TrimRight(strings.Join(s.lines, "\n"), "\n") }

// stillView is a view that nobody redraws but the test.
func stillView(s *screen, now *time.Time) *liveView {
	return &liveView{w: s, width: func() int { return 100 }, now: func() time.Time { return *now }, started: *now, stop: make(chan struct{})}
}

func progress(ended, total int) job.Progress {
	return job.Progress{Total: total, Ended: score.Counts{Trials: ended}}
}

// TestInterruptLeavesNoScraps: what the terminal itself writes of ^C goes with the view.
func TestInterruptLeavesNoScraps(t *testing.T) {
	t.Parallel()
	var s screen
	now := time.Now()
	v := stillView(&s, &now)
	v.event(job.Event{Kind: job.EventJobStart, Time: now, Progress: progress(0, 8)})
	v.event(job.Event{Kind: job.EventTrial, Time: now, Progress: progress(0, 8), Trial: &trial.Event{Kind: trial.EventStart, TrialName: "slow__1234567"}})
	v.draw()
	if !strings.Contains(s.text(), "0/8 trials") || !strings.Contains(s.text(), "slow__1234567  starting") {
		t.Fatalf("it shows\n%s", s.text())
	}
	_, _ = s.Write([]byte("^C"))
	v.draining()
	v.event(job.Event{Kind: job.EventTrial, Time: now, Progress: progress(1, 8), Trial: &trial.Event{
		Kind: trial.EventEnd, TrialName: "slow__1234567", Result: &jobdir.TrialResult{ExceptionInfo: &jobdir.ExceptionInfo{Type: "CancelledError"}},
	}})
	v.erase()
	if got, want := s.text(), "slow__1234567: CancelledError  [1/8]"; got != want {
		t.Errorf("the screen shows\n%s\nwant\n%s", got, want)
	}
}

// TestTimeThatIsLeft: there is an estimate once a trial of this run has ended, from those
// alone, and none of work that is being cancelled.
func TestTimeThatIsLeft(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, ended, total int
		draining             bool
		want                 time.Duration // 0 for none
	}{
		"nothing has ended":       {0, 0, 8, false, 0},
		"two of eight":            {0, 2, 8, false, 3 * time.Minute},
		"a resumed job":           {4, 5, 8, false, 3 * time.Minute},
		"a resumed job's begin":   {4, 4, 8, false, 0},
		"the last":                {0, 8, 8, false, 0},
		"all are being cancelled": {0, 2, 8, true, 0},
	} {
		var s screen
		now := time.Now()
		v := stillView(&s, &now)
		v.event(job.Event{Kind: job.EventJobStart, Time: now, Progress: progress(c.before, c.total)})
		v.progress = progress(c.ended, c.total)
		v.drain = c.draining
		got, shown := v.remaining(time.Minute)
		if got != c.want || shown != (c.want > 0) {
			t.Errorf("%s: %s left, shown %v, want %s", name, got, shown, c.want)
		}
	}
}

func TestLiveMeanIsShort(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0.4444444444333333": "0.4444", "1.0": "1", "0.5": "0.5", "12": "12", "1e-05": "1e-05", "nan": "nan", "inf": "inf", "0.58333": "0.5833",
	} {
		if got := shortNumber(text); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}

// TestLinesWithoutATerminal: one line for a trial, and its phases when they are asked for.
func TestLinesWithoutATerminal(t *testing.T) {
	t.Parallel()
	for verbose, want := range map[bool]int{false: 3, true: 8} {
		var b strings.Builder
		now := time.Now()
		v := &lineView{w: &b, verbose: verbose}
		v.event(job.Event{Kind: job.EventJobStart, Time: now, JobName: "j", Progress: progress(0, 1)})
		for _, kind := range []trial.EventKind{trial.EventStart, trial.EventEnvironmentStart, trial.EventAgentSetupStart, trial.EventAgentStart, trial.EventVerificationStart} {
			v.event(job.Event{Kind: job.EventTrial, Time: now, Trial: &trial.Event{Kind: kind, TrialName: "t__1234567"}})
		}
		v.event(job.Event{Kind: job.EventTrial, Time: now, Progress: progress(1, 1), Trial: &trial.Event{Kind: trial.EventEnd, TrialName: "t__1234567", Result: &jobdir.TrialResult{}}})
		v.event(job.Event{Kind: job.EventJobEnd, Time: now, JobName: "j", Progress: progress(1, 1)})
		if got := strings.Count(b.String(), "\n"); got != want {
			t.Errorf("verbose %v: %d lines, want %d:\n%s", verbose, got, want, b.String())
		}
	}
}

// TestLiveWaiting: what a trial waits for is shown until one begins.
func TestLiveWaiting(t *testing.T) {
	t.Parallel()
	s, now := &screen{}, time.Unix(0, 0)
	v := stillView(s, &now)
	v.event(job.Event{Kind: job.EventWait, Waiting: &job.Waiting{TrialName: "b__1"}, Message: "waits: nothing is free", Progress: progress(0, 2)})
	v.draw()
	if !strings.Contains(s.text(), "\nb__1: waits: nothing is free") {
		t.Errorf("shown:\n%s", s.text())
	}
	v.event(job.Event{Kind: job.EventTrial, Trial: &trial.Event{Kind: trial.EventStart, TrialName: "b__1"}, Progress: progress(1, 2)})
	v.draw()
	if strings.Contains(s.text(), "waits") {
		t.Errorf("still shown:\n%s", s.text())
	}
}

// TestConcurrency: the last of several counts, a number or auto.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	f := &Flags{}
	c := concurrency{f}
	for _, step := range []struct {
		text, shown string
		auto        bool
		fails       bool
	}{{"3", "3", false, false}, {"auto", "auto", true, false}, {"0", "auto", true, true}, {"Auto", "auto", true, true}, {"2", "2", false, false}} {
		if err := c.Set(step.text); (err != nil) != step.fails || c.String() != step.shown || f.Auto != step.auto {
			t.Errorf("%q: %v, %s, %v", step.text, err, c.String(), f.Auto)
		}
	}
	if err := c.Set("auto"); err != nil || *f.Set.NConcurrent != job.ThisMachine().CPUs {
		t.Errorf("auto is %d, %v", *f.Set.NConcurrent, err)
	}
}
