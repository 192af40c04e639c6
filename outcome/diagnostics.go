package outcome

import (
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/value"
)

// The default bounds of [Diagnostics]: how many trials and how many characters of
// an error's text.
const (
	MaxDiagnostics     = 20
	MaxDiagnosticChars = 2000
)

// Diagnostic says why one trial failed, beside a result line.
type Diagnostic struct {
	TaskName, TrialName string
	Status              string
	Errored             bool
	Reason              Code
	// ErrorText must be redacted by whoever knows the secrets. Nil is null.
	ErrorText *string

	marker bool
}

// Diagnostics chooses from the trials of a job, in order, those that errored or
// failed: at most limit, with error texts of at most maxChars characters, and a
// marker that counts the rest if there is one (outcome mapping, section 4.4).
func Diagnostics(trials []Diagnostic, limit, maxChars int) ([]Diagnostic, error) {
	if limit < 0 {
		return nil, exception.Errorf(exception.ValueError, "limit must be >= 0")
	}
	var out []Diagnostic
	omitted := 0
	for _, t := range trials {
		if !t.Errored && Status(t.Status) != Failed {
			continue
		}
		if len(out) == limit {
			omitted++
			continue
		}
		text, err := shorten(t.ErrorText, maxChars)
		if err != nil {
			return nil, err
		}
		t.ErrorText = text
		out = append(out, t)
	}
	if omitted > 0 {
		text := "+" + value.NewInt(int64(omitted)).String() + " more failed trial(s) omitted"
		out = append(out, Diagnostic{
			TaskName: "__truncated__", TrialName: "__truncated__", Status: string(Failed), Errored: true,
			Reason: diagnosticsTruncated, ErrorText: &text, marker: true,
		})
	}
	return out, nil
}

func shorten(text *string, most int) (*string, error) {
	if text == nil {
		return nil, nil
	}
	if most < 0 {
		return nil, exception.Errorf(exception.ValueError, "max_error_chars must be >= 0")
	}
	head, longer := cut(*text, most)
	if longer {
		head += "…[truncated]"
	}
	return &head, nil
}

// Object returns the diagnostic as an entry of the field trial_diagnostics.
func (d Diagnostic) Object() *value.Object {
	obj := value.NewObject(6)
	obj.Append("task_name", value.Str(d.TaskName))
	obj.Append("trial_name", value.Str(d.TrialName))
	obj.Append("status", value.Str(d.Status))
	obj.Append("errored", value.Bool(d.Errored))
	obj.Append("reason_code", d.Reason.value())
	if d.ErrorText == nil {
		obj.Append("error_text", value.Null{})
	} else {
		obj.Append("error_text", value.Str(*d.ErrorText))
	}
	return obj
}

// StderrLine returns the diagnostic as a line for stderr, without a line end;
// "" for the marker, which has none.
func (d Diagnostic) StderrLine() string {
	if d.marker {
		return ""
	}
	text := ""
	if d.ErrorText != nil {
		text = *d.ErrorText
	}
	return oneLine(strings.Join([]string{
		"agent_challenge_trial_diagnostic",
		"task=" + d.TaskName, "trial=" + d.TrialName, "reason=" + string(d.Reason), "error=" + text,
	}, " "))
}
