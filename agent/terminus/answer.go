package terminus

import (
	"math"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// command is what an answer wants to be typed, and how long to wait after it began.
type command struct {
	keystrokes string
	// seconds is finite.
	seconds float64
}

// defaultSeconds is the wait of a command that says none.
const defaultSeconds = 1.0

// remark is something that a parser has to say to the model. Its code is what rules
// of the package and the recorded answers go by; the text is the model's.
type remark struct{ code, text string }

// answer is what a parser made of a model's text.
type answer struct {
	commands []command
	complete bool
	// failure is why the answer could not be used; nil for one that can.
	failure  *remark
	warnings []remark
	// analysis and plan are text in answers that keep to the rules; nil where absent.
	analysis, plan value.Value
}

func (a *answer) warn(code, text string) { a.warnings = append(a.warnings, remark{code, text}) }

// warned reports whether there is a warning of a code.
func (a *answer) warned(code string) bool {
	for _, w := range a.warnings {
		if w.code == code {
			return true
		}
	}
	return false
}

// feedback is what the model is told of its answer; empty when there is nothing to say.
func (a *answer) feedback() string {
	var parts, warnings []string
	if a.failure != nil {
		parts = append(parts, "ERROR: "+a.failure.text)
	}
	for _, w := range a.warnings {
		warnings = append(warnings, "- "+w.text)
	}
	if len(warnings) > 0 {
		parts = append(parts, "WARNINGS: "+strings.Join(warnings, "\n"))
	}
	// Names in it are the model's, and there is a line for each of its commands.
	return truncate(validText(strings.Join(parts, "\n")), maxScreen)
}

// message is the answer's text for the trajectory.
func (a *answer) message() string {
	var lines []string
	if value.Truth(a.analysis) {
		lines = append(lines, "Analysis: "+value.Text(a.analysis))
	}
	if value.Truth(a.plan) {
		lines = append(lines, "Plan: "+value.Text(a.plan))
	}
	return strings.Join(lines, "\n")
}

// parser reads answers of one form (section 4.7).
type parser interface {
	// name is the one of the setting.
	name() string
	// kind names the form to the model.
	kind() string
	parse(text string) *answer
	// salvage returns the usable beginning of an answer that was cut off.
	salvage(text string) (string, bool)
}

// parsers returns those that there are, the default first.
func parsers() []parser { return []parser{jsonParser{}, xmlParser{}} }

// usableSeconds reports whether a duration can be waited for and written down.
func usableSeconds(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, -1) }

// typable is text without what cannot be typed: arguments of programs have no zero
// bytes, and terminals no surrogates.
func typable(s string) string {
	return validText(strings.ReplaceAll(s, "\x00", ""))
}

// validText is text of any origin as UTF-8.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
