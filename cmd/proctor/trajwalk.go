package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/report"
)

// walkTrajectory shows one step after the other in the terminal, led by keys.
func walkTrajectory(ctx context.Context, env *Env, shown []*report.Trajectory) error {
	in, size, ok := terminalOf(env)
	if !ok {
		return withHint(usageErrorf("--step needs a terminal"), "without it all steps are printed")
	}
	w := newWalker(shown, size)
	if len(w.steps) == 0 {
		return usageErrorf("--step: none of its steps is among those that were asked for")
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("reading keys: %w", err)
	}
	defer func() { _ = term.Restore(int(in.Fd()), before) }()
	defer func() { _, _ = io.WriteString(env.Stdout, ansi.ShowCursor+ansi.ResetModeAltScreenSaveCursor) }()
	_, _ = io.WriteString(env.Stdout, ansi.SetModeAltScreenSaveCursor+ansi.HideCursor) // the first frame tells of trouble
	keys := make(chan string)
	go readKeys(ctx, in, keys)
	for {
		if _, err := lipgloss.Fprint(env.Stdout, w.frame()); err != nil {
			return fmt.Errorf("showing a step: %w", err)
		}
		select {
		case key, ok := <-keys:
			if !ok || !w.press(key) {
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// terminalOf is where keys come from, and the size of the terminal that shows things; not
// ok where either is none.
func terminalOf(env *Env) (in *os.File, size func() (width, height int), ok bool) {
	in, isFile := env.Stdin.(*os.File)
	out, hasFd := env.Stdout.(interface{ Fd() uintptr })
	if !isFile || !hasFd || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return nil, nil, false
	}
	return in, func() (width, height int) {
		width, height, err := term.GetSize(int(out.Fd()))
		if err != nil || width < 1 || height < 3 {
			return 80, 24
		}
		return width, height
	}, true
}

// Keys that are not characters.
const (
	keyUp, keyDown, keyLeft, keyRight = "up", "down", "left", "right"
	keyPageUp, keyPageDown            = "page up", "page down"
	keyHome, keyEnd                   = "home", "end"
	keyEscape, keyEnter, keyBack      = "escape", "enter", "back"
)

// sequences are what terminals send for them behind an escape.
var sequences = map[string]string{
	"[A": keyUp, "[B": keyDown, "[C": keyRight, "[D": keyLeft, "OA": keyUp, "OB": keyDown, "OC": keyRight, "OD": keyLeft,
	"[5~": keyPageUp, "[6~": keyPageDown, "[H": keyHome, "[F": keyEnd, "OH": keyHome, "OF": keyEnd, "[1~": keyHome, "[4~": keyEnd,
}

// readKeys sends keys until the terminal is gone, and closes the channel then.
func readKeys(ctx context.Context, in io.Reader, keys chan<- string) {
	defer close(keys)
	for r := bufio.NewReader(in); ; {
		key, err := readKey(r)
		if err != nil {
			return
		}
		select {
		case keys <- key:
		case <-ctx.Done():
			return
		}
	}
}

// readKey is the next key. A sequence that is not known is the key escape.
func readKey(r *bufio.Reader) (string, error) {
	c, _, err := r.ReadRune()
	if err != nil {
		return "", err //nolint:wrapcheck // it only ends the reading
	}
	switch c {
	case '\r', '\n':
		return keyEnter, nil
	case 0x7f, '\b':
		return keyBack, nil
	case 0x1b:
	default:
		return string(c), nil
	}
	text := ""
	for r.Buffered() > 0 && len(text) < 8 {
		b, err := r.ReadByte()
		if err != nil {
			break
		}
		text += string(rune(b))
		if text != "O" && b >= '@' && b != '[' {
			break
		}
	}
	if key, ok := sequences[text]; ok {
		return key, nil
	}
	return keyEscape, nil
}

// walker shows one step, or a part of it, at a time.
type walker struct {
	steps []walkStep
	size  func() (width, height int)

	at, top int             // the step, and the first line of it that is shown
	hidden  map[string]bool // kinds of content that are left out
	asking  bool            // the last line is for what is searched
	asked   string
	said    string // in the last line, until the next key

	kept   []string // lines of the step
	keptOf string   // and what they were made for
}

type walkStep struct {
	file  string
	step  *atif.Step
	n, of int // in its file
}

func newWalker(shown []*report.Trajectory, size func() (width, height int)) *walker {
	w := &walker{size: size, hidden: map[string]bool{}}
	for _, t := range shown {
		for i := range t.Steps {
			w.steps = append(w.steps, walkStep{t.File, &t.Steps[i], i + 1, len(t.Steps)})
		}
	}
	return w
}

// kinds are what can be left out, by their keys.
var kinds = map[string]string{"r": "reasoning", "c": "calls", "o": "output"}

// press does what a key stands for, and reports whether to go on.
func (w *walker) press(key string) bool {
	w.said = ""
	if w.asking {
		w.ask(key)
		return true
	}
	switch key {
	case "q", "\x03", "\x04":
		return false
	case "/":
		w.asking, w.asked = true, ""
	case "N":
		w.find()
	case keyRight, "n", "l":
		w.to(w.at + 1)
	case keyLeft, "p", "h":
		w.to(w.at - 1)
	case keyHome, "g":
		w.to(0)
	case keyEnd, "G":
		w.to(len(w.steps) - 1)
	default:
		if kind, ok := kinds[key]; ok {
			w.hidden[kind] = !w.hidden[kind]
		}
		w.leaf(key)
	}
	return true
}

// leaf goes through a long step.
func (w *walker) leaf(key string) {
	_, height := w.size()
	page := max(height-2, 1)
	switch key {
	case keyDown, "j", keyEnter:
		w.scroll(1)
	case keyUp, "k":
		w.scroll(-1)
	case keyPageUp, "b":
		w.scroll(-page)
	case keyPageDown:
		w.scroll(page)
	case " ":
		if before := w.top; w.scroll(page) == before {
			w.to(w.at + 1)
		}
	default:
		w.scroll(0)
	}
}

func (w *walker) to(step int) {
	if step = min(max(step, 0), len(w.steps)-1); step != w.at {
		w.at, w.top = step, 0
	}
}

// scroll returns the first line that is shown then.
func (w *walker) scroll(by int) int {
	width, height := w.size()
	w.top = min(max(w.top+by, 0), max(len(w.lines(width))-max(height-2, 1), 0))
	return w.top
}

// ask takes a key of what is searched.
func (w *walker) ask(key string) {
	switch key {
	case keyEnter:
		w.asking = false
		w.find()
	case keyEscape, "\x03":
		w.asking, w.asked = false, ""
	case keyBack:
		if r := []rune(w.asked); len(r) > 0 {
			w.asked = string(r[:len(r)-1])
		}
	default:
		if len([]rune(key)) == 1 && key >= " " {
			w.asked += key
		}
	}
}

// find goes to the next step that has what was asked for, and begins again behind the
// last.
func (w *walker) find() {
	if w.asked == "" {
		return
	}
	width, _ := w.size()
	for i := 1; i <= len(w.steps); i++ {
		n := (w.at + i) % len(w.steps)
		text := ansi.Strip(strings.Join(w.linesOf(n, width), "\n"))
		before, _, found := strings.Cut(strings.ToLower(text), strings.ToLower(w.asked))
		if found {
			w.at, w.top = n, 0
			w.scroll(max(strings.Count(before, "\n")-2, 0))
			return
		}
	}
	w.said = fmt.Sprintf("%q is in no step", w.asked)
}

// lines are those of the step that is shown; they are kept while nothing else is.
func (w *walker) lines(width int) []string {
	of := fmt.Sprint(w.at, width, w.hidden)
	if w.keptOf != of {
		w.kept, w.keptOf = w.linesOf(w.at, width), of
	}
	return w.kept
}

// linesOf are the lines of a step, none wider than the terminal.
func (w *walker) linesOf(n, width int) []string {
	s := *w.steps[n].step
	if w.hidden["reasoning"] {
		s.ReasoningContent = nil
	}
	if w.hidden["calls"] {
		s.ToolCalls = nil
	}
	if w.hidden["output"] {
		s.Observation = nil
	}
	var text bytes.Buffer
	p := trajPrinter{w: &text, colours: true}
	p.step(&s)
	return strings.Split(ansi.Hardwrap(strings.TrimSpace(text.String()), width, true), "\n")
}

// frame is what the terminal shows: where one is, a part of the step, and the keys.
func (w *walker) frame() string {
	width, height := w.size()
	w.scroll(0)
	s := w.steps[w.at]
	head := fmt.Sprintf("%s  step %d of %d", clean(s.file), s.n, s.of)
	rows := []string{console.Bold(ansi.Truncate(head, width, "…"))}
	lines := w.lines(width)
	shown := lines[w.top:min(w.top+max(height-2, 1), len(lines))]
	rows = append(rows, shown...)
	for len(rows) < height-1 {
		rows = append(rows, "")
	}
	rows = append(rows, ansi.Truncate(w.foot(len(lines), len(shown)), width, "…"))
	return ansi.EraseEntireScreen + ansi.CursorHomePosition + strings.Join(rows, "\r\n")
}

func (w *walker) foot(all, shown int) string {
	switch {
	case w.asking:
		return "/" + clean(w.asked)
	case w.said != "":
		return clean(w.said)
	}
	foot := "←→ step  ↑↓ scroll  space on  / search  N next  r reasoning  c calls  o output  q quit"
	if all > shown {
		foot = fmt.Sprintf("lines %d to %d of %d  ", w.top+1, w.top+shown, all) + foot
	}
	return console.Dim(foot)
}
