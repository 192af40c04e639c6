package terminus

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/proctor-run/proctor/value"
)

// maxScreen bounds what the model sees of the terminal at a time, in bytes.
const maxScreen = 10_000

// capture is what tmux shows of a terminal: with what has scrolled away, and without.
type capture struct {
	full, visible string
	// cut tells that only the end of full is there.
	cut bool
}

// screenState remembers what has been shown of a terminal.
type screenState struct {
	seen     bool
	previous string
	// inexact tells that only the end of the previous capture is remembered.
	inexact bool
}

// maxRemembered bounds what is remembered of a capture, in bytes: much more than a
// model can see of it. What is longer is recognised by its end.
const maxRemembered = 256 << 10

// show returns what is new in a capture, or what is visible where that cannot be told
// (section 4.4).
func (s *screenState) show(c capture) string {
	text, isNew := s.added(c.full)
	s.remember(c)
	if isNew {
		return "New Terminal Output:\n" + text
	}
	return "Current Terminal Screen:\n" + c.visible
}

func (s *screenState) remember(c capture) {
	s.seen, s.previous, s.inexact = true, value.Strip(c.full), c.cut
	if over := len(s.previous) - maxRemembered; over > 0 {
		end := s.previous[over:]
		_, whole, _ := strings.Cut(end, "\n")
		if whole == "" {
			whole = end
		}
		s.previous, s.inexact = strings.Clone(whole), true
	}
}

// added returns what a capture has beyond the previous one, beginning with its last
// line, which may have grown.
//
// Where all of the previous capture is remembered, the place of that line is counted
// from the beginning of this one, as the reference does it: captures begin alike.
// The recorded behaviour holds that.
func (s *screenState) added(full string) (string, bool) {
	if !s.seen {
		return "", false
	}
	at := strings.Index(full, s.previous)
	if at < 0 {
		return "", false
	}
	if line := strings.LastIndexByte(s.previous, '\n'); line >= 0 && s.inexact {
		at += line
	} else if line >= 0 {
		at = line
	}
	text := full[at:]
	return text, value.Strip(text) != ""
}

// truncate cuts the middle out of text that is longer than limit bytes, between
// characters.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head, tail := text[:limit/2], text[len(text)-limit/2:]
	head = wholeHead(head)
	for tail != "" && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	omitted := len(text) - len(head) - len(tail)
	return fmt.Sprintf("%s\n[... output limited to %d bytes; %d interior bytes omitted ...]\n%s", head, limit, omitted, tail)
}

// wholeHead drops a character that is cut off at the end.
func wholeHead(text string) string {
	for i := len(text) - 1; i >= 0 && i >= len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRuneInString(text[i:]) {
				return text[:i]
			}
			break
		}
	}
	return text
}

// lastCharacters returns the end of a text.
func lastCharacters(text string, n int) string {
	for i := len(text); i > 0; n-- {
		if n == 0 {
			return text[i:]
		}
		_, size := utf8.DecodeLastRuneInString(text[:i])
		i -= size
	}
	return text
}
