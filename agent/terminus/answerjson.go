package terminus

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// jsonParser reads answers that are a JSON object.
type jsonParser struct{}

var _ parser = jsonParser{}

func (jsonParser) name() string { return "json" }
func (jsonParser) kind() string { return "JSON response" }

func (jsonParser) salvage(string) (string, bool) { return "", false }

const (
	jsonNotFound = "json_not_found"
	invalidJSON  = "invalid_json"
)

// parse reads an answer. One that cannot be used is mended where that is simple.
func (jsonParser) parse(text string) *answer {
	a := parseJSON(text)
	if a.failure == nil {
		return a
	}
	if fixed, ok := closeBraces(text, a.failure.code); ok {
		if again := parseJSON(fixed); again.failure == nil {
			return corrected(again, "autofix_closing_brace", "closing braces were missing and have been added")
		}
	}
	if inner, ok := innerObject(text); ok {
		if again := parseJSON(inner); again.failure == nil {
			return corrected(again, "autofix_mixed_content", "the JSON object was taken out of other text")
		}
	}
	return a
}

func corrected(a *answer, code, what string) *answer {
	mended := remark{code, "AUTO-CORRECTED: " + what + "; please answer with nothing but a valid JSON object"}
	a.warnings = slices.Insert(a.warnings, 0, mended)
	return a
}

// closeBraces adds the braces that a text opens and does not close.
func closeBraces(text, failure string) (string, bool) {
	missing := strings.Count(text, "{") - strings.Count(text, "}")
	if missing <= 0 || failure != jsonNotFound && failure != invalidJSON {
		return "", false
	}
	return text + strings.Repeat("}", missing), true
}

var shallowObject = regexp.MustCompile(`\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}`)

// innerObject finds the first object of at most two levels in a text.
func innerObject(text string) (string, bool) {
	for _, at := range shallowObject.FindAllStringIndex(text, -1) {
		candidate := text[at[0]:at[1]]
		if _, err := value.Decode([]byte(candidate)); err == nil {
			return candidate, true
		}
	}
	return "", false
}

// findObject returns where the first balanced object is. Quotes and backslashes count
// outside of it, too.
func findObject(text string) (start, end int, ok bool) {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++ // whatever follows means nothing
		case c == '"':
			inString = !inString
		case inString:
		case c == '{':
			if depth == 0 {
				start = i
			}
			depth++
		case c == '}' && depth > 0:
			if depth--; depth == 0 {
				return start, i + 1, true
			}
		}
	}
	return 0, 0, false
}

// parseJSON reads an answer as it is.
func parseJSON(text string) *answer {
	a := &answer{}
	start, end, ok := findObject(text)
	if !ok {
		a.failure = &remark{jsonNotFound, "No valid JSON object found"}
		a.warn(jsonNotFound, "No valid JSON object found in the response")
		return a
	}
	if value.Strip(text[:start]) != "" {
		a.warn("extra_before", "Extra text detected before the JSON object")
	}
	if value.Strip(text[end:]) != "" {
		a.warn("extra_after", "Extra text detected after the JSON object")
	}
	content := text[start:end]
	v, err := value.Decode([]byte(content))
	o, isObject := v.(*value.Object)
	if err != nil || !isObject {
		a.failure = &remark{invalidJSON, fmt.Sprintf("Invalid JSON: %v | %s", err, preview(content))}
		return a
	}
	readFields(a, o, content)
	return a
}

// preview quotes text for the model, its beginning when it is long.
func preview(content string) string {
	const all, head = 200, 100
	if r := []rune(content); len(r) >= all {
		return fmt.Sprintf("Content preview: %s...", string(r[:head]))
	}
	return "Content: " + content
}

func readFields(a *answer, o *value.Object, content string) {
	var missing []string
	for _, name := range []string{"analysis", "plan", "commands"} {
		if !o.Has(name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		a.failure = &remark{"missing_fields", "Missing required fields: " + strings.Join(missing, ", ")}
		return
	}
	analysis, plan := textField(a, o, "analysis"), textField(a, o, "plan")
	list, _ := o.Get("commands")
	commands, isList := list.(value.List)
	if !isList {
		a.failure = &remark{"commands_not_array", "Field 'commands' must be an array"}
		return
	}
	a.analysis, a.plan = analysis, plan
	if outOfOrder(content) {
		a.warn("field_order", "Fields appear in the wrong order; expected: analysis, plan, commands")
	}
	a.complete = completion(a, o)
	failed := readCommands(a, commands)
	switch {
	case failed == nil:
	case a.complete: // then there is nothing that needs to be typed
		a.commands = nil
		a.warnings = append(a.warnings, *failed)
	default:
		a.commands, a.failure = nil, failed
	}
}

func textField(a *answer, o *value.Object, name string) value.Value {
	v, _ := o.Get(name)
	if s, ok := v.(value.Str); ok {
		return value.Str(validText(string(s)))
	}
	a.warn(name+"_not_string", fmt.Sprintf("Field '%s' should be a string", name))
	return v
}

// outOfOrder reports whether the fields are not in the order that is asked for.
func outOfOrder(content string) bool {
	last := -1
	for _, field := range []string{`"analysis":`, `"plan":`, `"commands":`} {
		at := strings.Index(content, field)
		if at < 0 {
			continue
		}
		if at < last {
			return true
		}
		last = at
	}
	return false
}

func completion(a *answer, o *value.Object) bool {
	v, _ := o.Get("task_complete")
	switch v := v.(type) {
	case nil, value.Null, value.Bool:
		return value.Truth(v)
	case value.Str:
		switch strings.ToLower(string(v)) {
		case "true", "1", "yes":
			return true
		}
		return false
	}
	a.warn("task_complete_type", "Field 'task_complete' should be a boolean or a string")
	return value.Truth(v)
}

// readCommands reads the commands up to the first that cannot be typed, which it
// returns.
func readCommands(a *answer, list value.List) *remark {
	for i, item := range list {
		n := i + 1
		o, ok := item.(*value.Object)
		if !ok {
			return &remark{fmt.Sprintf("command_not_object:%d", n), fmt.Sprintf("Command %d must be an object", n)}
		}
		v, ok := o.Get("keystrokes")
		if !ok {
			return &remark{fmt.Sprintf("keystrokes_missing:%d", n), fmt.Sprintf("Command %d is missing the required field 'keystrokes'", n)}
		}
		keys, ok := v.(value.Str)
		if !ok {
			return &remark{fmt.Sprintf("keystrokes_not_string:%d", n), fmt.Sprintf("Command %d: 'keystrokes' must be a string", n)}
		}
		c := command{keystrokes: typable(string(keys)), seconds: jsonSeconds(a, o, n)}
		checkCommandFields(a, o, n)
		checkNewline(a, c, n, len(list))
		a.commands = append(a.commands, c)
	}
	return nil
}

func jsonSeconds(a *answer, o *value.Object, n int) float64 {
	v, ok := o.Get("duration")
	if !ok {
		a.warn(fmt.Sprintf("missing_duration:%d", n), fmt.Sprintf("Command %d has no duration, so %.1f is used", n, defaultSeconds))
		return defaultSeconds
	}
	switch v := v.(type) {
	case value.Bool:
		if v {
			return 1
		}
		return 0
	case value.Number:
		if f, err := value.ToFloat(v); err == nil && usableSeconds(f) {
			return f
		}
	}
	a.warn(fmt.Sprintf("invalid_duration:%d", n), fmt.Sprintf("Command %d has a duration that is no number, so %.1f is used", n, defaultSeconds))
	return defaultSeconds
}

// maxNamed bounds how many names of a model's are quoted back to it.
const maxNamed = 10

func checkCommandFields(a *answer, o *value.Object, n int) {
	var unknown []string
	for name := range o.Keys() {
		if name != "keystrokes" && name != "duration" && len(unknown) < maxNamed {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		a.warn(fmt.Sprintf("unknown_fields:%d", n), fmt.Sprintf("Command %d has unknown fields: %s", n, strings.Join(unknown, ", ")))
	}
}

// checkNewline warns of commands that run into the next one.
func checkNewline(a *answer, c command, n, of int) {
	if n < of && !strings.HasSuffix(c.keystrokes, "\n") {
		a.warn(fmt.Sprintf("no_trailing_newline:%d", n), fmt.Sprintf(
			"Command %d does not end with a newline, and another one follows: the two are typed on one line unless the first needs no newline", n))
	}
}
