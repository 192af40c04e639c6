package view

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// none stands where there is nothing to say.
const none = "–"

func count(n int, what string) string { return console.Count(n, what) }

// moment is a time of the day.
func moment(t *time.Time) string {
	if t == nil {
		return none
	}
	return t.Format("2006-01-02 15:04:05")
}

// ago is how long ago something was, in the largest unit.
func ago(now time.Time, t *time.Time) string {
	if t == nil {
		return ""
	}
	d := now.Sub(*t)
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}

// ago is how long ago something was; pages that stay say when.
func (s *Server) ago(t *time.Time) string {
	if s.still && t != nil {
		return moment(t)
	}
	return ago(s.o.Now(), t)
}

// seconds is a duration for people.
func seconds(s float64) string {
	if math.IsNaN(s) {
		return none
	}
	return console.Seconds(s)
}

// decimals is a number with three places.
func decimals(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return none
	}
	return strconv.FormatFloat(x, 'f', 3, 64)
}

func percent(x float64) string {
	if math.IsNaN(x) {
		return none
	}
	return strconv.FormatFloat(100*x, 'f', 1, 64) + "%"
}

// dollars is what something cost.
func dollars(usd *float64) string {
	if usd == nil || math.IsNaN(*usd) || math.IsInf(*usd, 0) {
		return none
	}
	if *usd != 0 && math.Abs(*usd) < 0.1 {
		return fmt.Sprintf("$%.4f", *usd)
	}
	return fmt.Sprintf("$%.2f", *usd)
}

// figure is a number with its name.
type figure struct{ Name, Value string }

// usage is what models took; nothing where nothing is known of it.
func usage(cost, input, cached, output string) []figure {
	all := []figure{{"Cost", cost}, {"Tokens in", input}, {"of them cached", cached}, {"Tokens out", output}}
	if !slices.ContainsFunc(all, func(f figure) bool { return f.Value != none }) {
		return nil
	}
	return all
}

// tokens is a number of them, short.
func tokens(n *value.Int) string {
	if n == nil {
		return none
	}
	small, ok := n.Int64()
	switch {
	case !ok:
		return n.String()
	case small >= 10_000_000:
		return fmt.Sprintf("%dM", small/1_000_000)
	case small >= 10_000:
		return fmt.Sprintf("%dk", small/1000)
	}
	return strconv.FormatInt(small, 10)
}

// rewardsText are the rewards of a trial in a few characters: of one its number, of more
// each with its name.
func rewardsText(r *reward.Rewards) string {
	if r.Len() == 0 {
		return none
	}
	var parts []string
	for name, v := range r.All() {
		text := shortNumber(v)
		if r.Len() > 1 {
			text = name + " " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func shortNumber(v value.Number) string {
	f, err := value.Float64(v)
	if err != nil {
		return value.Text(v)
	}
	return strconv.FormatFloat(f, 'g', 4, 64)
}

// firstReward is the number that stands for a trial: that under "reward", or the first.
func firstReward(r *reward.Rewards) (float64, bool) {
	if v, ok := r.Get("reward"); ok {
		f, err := value.Float64(v)
		return f, err == nil
	}
	for _, v := range r.All() {
		f, err := value.Float64(v)
		return f, err == nil
	}
	return 0, false
}

// look is how a trial's outcome is shown: a class of style, a sign for who sees no
// colours, and words.
type look struct{ Style, Sign, Text string }

// lookOf is the look of an outcome; x is the reward of one that has some.
func lookOf(class jobdir.Class, x float64, has bool) look {
	switch class {
	case jobdir.ClassScored, jobdir.ClassErroredWithReward:
		l := look{"part", "½", "partly solved"}
		switch {
		case !has || math.IsNaN(x):
			l = look{"none", "?", "a reward that is no number"}
		case x >= 1:
			l = look{"full", "✓", "solved"}
		case x <= 0:
			l = look{"zero", "✕", "not solved"}
		}
		if class == jobdir.ClassErroredWithReward {
			l.Style, l.Text = l.Style+" odd", l.Text+", with an error"
		}
		return l
	case jobdir.ClassErroredWithoutReward:
		return look{"error", "!", "error, no reward"}
	case jobdir.ClassCancelled:
		return look{"stopped", "‖", "cancelled"}
	case jobdir.ClassUnscored:
		return look{"none", "○", "no reward and no error"}
	case report.ClassUnreadable:
		return look{"error", "¿", "its result cannot be read"}
	case report.ClassUnfinished:
		return look{"open", "…", "never ended"}
	case report.ClassNotRun:
		return look{"open", "·", "never began"}
	}
	return look{"open", "·", string(class)}
}

// plain makes text from outside safe to look at: without the sequences that move a
// terminal's cursor, and without characters that turn the direction of writing around or
// are no characters.
func plain(text string) string {
	text = ansi.Strip(strings.ToValidUTF8(text, "\uFFFD"))
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return -1
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return '\uFFFD'
		}
		return r
	}, text)
}

// label is a name from outside as a page shows it, which may have any length.
func label(name string) string { return shortened(plain(name), longestLabel) }

// prose is a text from outside of which a page shows the beginning.
func prose(text string) string { return shortened(plain(text), longestText) }

// shortened is the beginning of a text, and how much more there is.
func shortened(text string, most int) string {
	text, more := cut(text, most)
	if more > 0 {
		text += " … " + size(int64(more)) + " more"
	}
	return text
}

// cut is the beginning of a text that is too long to be shown whole.
func cut(text string, most int) (head string, more int) {
	if len(text) <= most {
		return text, 0
	}
	head = strings.ToValidUTF8(text[:most], "")
	return head, len(text) - len(head)
}

func size(n int64) string { return console.Bytes(n) }

// tokensJSON is tokens of a number as JSON.
func tokensJSON(n json.RawMessage) string {
	v, err := value.DecodeText(string(n))
	if err != nil {
		return none
	}
	if i, ok := v.(value.Int); ok {
		return tokens(&i)
	}
	return none
}
