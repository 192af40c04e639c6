package cast

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"io"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// Frame is what the screen shows from a time on, in seconds.
type Frame struct {
	At   float64
	Rows []Row
}

// Row is a line of the screen without the blanks at its end.
type Row []Run

// Run is text of one look.
type Run struct {
	Text string
	// Fore and Back are colours from 0 to 15, in the order of terminals, or -1.
	Fore, Back                      int
	Bold, Dim, Italic, Underline    bool
	Reverse, Conceal, Strikethrough bool
}

// atOnce is how much is written to the screen before one looks whether there is still
// time: a few bytes can be much work.
const atOnce = 256

// longestCluster is how much of what stands in one place is shown, in bytes.
const longestCluster = 32

// Frames draws count frames from one on. Everything before them is drawn, too; the error is
// that of the context, or says that the recording breaks the terminal.
func (r *Recording) Frames(ctx context.Context, from, count int) (frames []Frame, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			frames, err = nil, fmt.Errorf("drawing the recording: %v", broken)
		}
	}()
	screen, err := newScreen(r.Columns, r.Rows)
	if err != nil {
		return nil, err
	}
	for i, f := range r.frames[:min(max(from, 0)+max(count, 0), len(r.frames))] {
		for _, e := range f.events {
			if e.text == "" {
				screen.Resize(e.columns, e.rows)
			}
			for text := e.text; text != ""; {
				if ctx.Err() != nil {
					return nil, context.Cause(ctx)
				}
				n := whole(text, atOnce)
				_, _ = screen.WriteString(text[:n]) // it never fails while the screen is open
				text = text[n:]
			}
		}
		if i >= from {
			frames = append(frames, Frame{f.at, rowsOf(screen)})
		}
	}
	return frames, nil
}

var errNoScreen = errors.New("the terminal cannot be drawn")

// newScreen is a terminal that answers nothing: what it is asked would wait for a reader.
func newScreen(columns, rows int) (*vt.Emulator, error) {
	screen := vt.NewEmulator(columns, rows)
	screen.SetScrollbackSize(1)
	answers, ok := screen.InputPipe().(io.Closer)
	if !ok {
		return nil, errNoScreen
	}
	if err := answers.Close(); err != nil {
		return nil, errors.Join(errNoScreen, err)
	}
	return screen, nil
}

// whole is how much of a text can be written without cutting a character.
func whole(text string, most int) int {
	if len(text) <= most {
		return len(text)
	}
	for n := most; n > most-4; n-- {
		if text[n]&0xC0 != 0x80 {
			return n
		}
	}
	return most
}

func rowsOf(screen *vt.Emulator) []Row {
	rows := make([]Row, screen.Height())
	for y := range rows {
		rows[y] = rowOf(screen, y)
	}
	return rows
}

func rowOf(screen *vt.Emulator, y int) Row {
	var row Row
	var text strings.Builder
	var look Run
	end := func() {
		if text.Len() > 0 {
			look.Text = text.String()
			row = append(row, look)
			text.Reset()
		}
	}
	for x := 0; x < screen.Width(); x++ {
		cell := screen.CellAt(x, y)
		content, next := " ", Run{Fore: -1, Back: -1}
		if cell != nil {
			if cell.Width == 0 && cell.Content == "" {
				continue // behind a wide character
			}
			if cell.Content != "" {
				content = cell.Content[:whole(cell.Content, longestCluster)]
			}
			next = lookOf(&cell.Style)
		}
		if next != look {
			end()
			look = next
		}
		look.Text = ""
		text.WriteString(content)
	}
	end()
	return trimmed(row)
}

func lookOf(s *uv.Style) Run {
	has := func(attribute uint8) bool { return s.Attrs&attribute != 0 }
	return Run{
		Fore: colourOf(s.Fg), Back: colourOf(s.Bg), Bold: has(uv.AttrBold), Dim: has(uv.AttrFaint), Italic: has(uv.AttrItalic),
		Underline: s.Underline != uv.UnderlineNone, Reverse: has(uv.AttrReverse), Conceal: has(uv.AttrConceal), Strikethrough: has(uv.AttrStrikethrough),
	}
}

// colourOf is the nearest of the sixteen.
func colourOf(c color.Color) int {
	if c == nil {
		return -1
	}
	return int(ansi.Convert16(c))
}

// trimmed leaves away blanks that nobody sees.
func trimmed(row Row) Row {
	for len(row) > 0 {
		last := &row[len(row)-1]
		if last.Back >= 0 || last.Reverse || last.Underline {
			return row
		}
		if last.Text = strings.TrimRight(last.Text, " "); last.Text != "" {
			return row
		}
		row = row[:len(row)-1]
	}
	return row
}
