package feed

import (
	"strings"
	"unicode/utf8"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/value"
)

// Bounds of what one event carries, in bytes before they are escaped.
const (
	// maxMessage is enough for the end of a log; the whole is in the job's directory.
	maxMessage = 64 << 10
	// maxName is more than file systems take for the name of a trial.
	maxName = 1 << 10
)

const streamAgent = "agent"

// progressEvent is the event of the outcome mapping, section 15.2.
func progressEvent(to *Target, task string, sequence int64, phase Phase, message string) []byte {
	var done value.Value = value.Null{}
	if phase == Completed {
		done = value.Float(1)
	}
	o := value.NewObject(9)
	o.Append("schema_version", value.NewInt(1))
	o.Append("eval_run_id", orNull(to.run))
	o.Append("submission_id", orNull(to.submission))
	o.Append("task_id", value.Str(task))
	o.Append("sequence", value.NewInt(sequence))
	o.Append("status", value.Str(phase))
	o.Append("event_type", value.Str("task.status"))
	o.Append("progress", done)
	o.Append("message", orNull(message))
	// What reads lines may take more for a line's end than LF does, so that nothing but
	// ASCII stands on one.
	return compact(o, to.receiver != nil)
}

// logEvent is the event of the outcome mapping, section 15.3. status is nil for live
// output, which has none.
func logEvent(trial, task string, status value.Value, stream, message string) []byte {
	o := value.NewObject(6)
	o.Append("kind", value.Str("log"))
	o.Append("trial_name", value.Str(trial))
	o.Append("task_id", value.Str(task))
	if status != nil {
		o.Append("status", status)
	}
	o.Append("stream", value.Str(stream))
	o.Append("message", value.Str(message))
	return compact(o, false)
}

func compact(o *value.Object, unicode bool) []byte {
	return value.AppendDumps(nil, o, value.DumpsOptions{ItemSeparator: ",", KeySeparator: ":", Unicode: unicode})
}

func orNull(text string) value.Value {
	if text == "" {
		return value.Null{}
	}
	return value.Str(text)
}

// clip keeps the end of a text, behind a mark that says what was cut. What is no UTF-8 is
// replaced: lone surrogates, which package value knows, are refused by many readers.
func clip(text string, limit int) string {
	cut := max(0, len(text)-limit)
	for 0 < cut && cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut++
	}
	kept := strings.ToValidUTF8(text[cut:], "\uFFFD")
	if cut == 0 {
		return kept
	}
	return bounded.CutMark(int64(cut))[1:] + kept
}
