package terminus

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// xmlParser reads answers in tags. They are not XML: nothing in them is escaped.
type xmlParser struct{}

var _ parser = xmlParser{}

func (xmlParser) name() string { return "xml" }
func (xmlParser) kind() string { return "response" }

const (
	responseOpen, responseClose = "<response>", "</response>"
	commandsClose               = "</commands>"
	multipleCommands            = "multiple_commands"
)

var (
	completeTag    = regexp.MustCompile(`(?i)<task_complete>\s*true\s*</task_complete>`)
	openTag        = regexp.MustCompile(`<([A-Za-z_][A-Za-z0-9_-]*)(\s[^>]*)?>|<([A-Za-z_][A-Za-z0-9_-]*)\s*/>`)
	keystrokesTag  = regexp.MustCompile(`<keystrokes(\s[^>]*|/)?>`)
	attribute      = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_-]*)\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)`)
	sectionNames   = []string{"analysis", "plan", "commands", "task_complete"}
	entities       = []string{"&lt;", "&gt;", "&amp;", "&quot;", "&apos;"}
	sectionsNeeded = sectionNames[:3]
)

// salvage cuts an answer off after its end tag, if what stands before is whole.
func (xmlParser) salvage(text string) (string, bool) {
	at := strings.Index(text, commandsClose)
	if at < 0 {
		return "", false
	}
	end := strings.Index(text[at:], responseClose)
	if end < 0 {
		return "", false
	}
	cut := text[:at+end+len(responseClose)]
	a := xmlParser{}.parse(cut)
	return cut, a.failure == nil && !a.warned(multipleCommands)
}

func (xmlParser) parse(text string) *answer {
	a := &answer{}
	before, content, _ := strings.Cut(text, responseOpen)
	content, after, _ := strings.Cut(content, responseClose)
	if content == "" {
		a.failure = &remark{"no_response_tag", "No <response> tag found, or nothing is in it"}
		return a
	}
	if value.Strip(before) != "" {
		a.warn("extra_before", "Extra text detected before the <response> tag")
	}
	if value.Strip(after) != "" {
		a.warn("extra_after", "Extra text detected after the </response> tag")
		if strings.Count(text, responseOpen) > 1 {
			a.warn("multiple_responses", "There is more than one <response>; only the first one counts")
		}
	}
	a.complete = completeTag.MatchString(content)
	checkSections(a, content)
	a.analysis, a.plan = sectionText(content, "analysis"), sectionText(content, "plan")
	commands, there := section(content, "commands")
	switch {
	case !there && !a.complete:
		a.failure = &remark{"missing_commands", "The <commands> section is missing"}
	case value.Strip(commands) != "":
		readKeystrokes(a, commands)
	case there && !a.complete:
		a.warn("commands_empty", "The <commands> section is empty; not doing anything should be rare")
	}
	return a
}

// section returns what is between the first tags of a name, and whether there are any.
// A tag that closes itself holds nothing.
func section(content, name string) (string, bool) {
	if _, rest, ok := strings.Cut(content, "<"+name+">"); ok {
		if inner, _, ok := strings.Cut(rest, "</"+name+">"); ok {
			return inner, true
		}
	}
	return "", strings.Contains(content, "<"+name+"/>") || strings.Contains(content, "<"+name+" />")
}

func sectionText(content, name string) value.Value {
	text, there := section(content, name)
	if !there {
		return nil
	}
	return value.Str(validText(value.Strip(text)))
}

// checkSections warns of sections that are missing, unknown, repeated or out of order.
func checkSections(a *answer, content string) {
	for _, name := range sectionsNeeded {
		if _, there := section(content, name); !there {
			a.warn("missing_section:"+name, fmt.Sprintf("The <%s> section is missing", name))
		}
	}
	top := topTags(content)
	seen := map[string]int{}
	last := -1
	ordered := true
	for _, name := range top {
		seen[name]++
		at := slices.Index(sectionNames, name)
		switch {
		case at < 0 && seen[name] == 1:
			a.warn("unknown_tag:"+name, fmt.Sprintf("Unknown tag <%s> in the response", name))
		case at >= 0 && seen[name] == 1:
			ordered = ordered && at > last
			last = max(last, at)
		}
	}
	for _, name := range sectionNames {
		switch {
		case seen[name] < 2:
		case name == "commands":
			a.warn(multipleCommands, "There is more than one <commands> section; only the first one counts")
		default:
			a.warn("multiple_sections:"+name, fmt.Sprintf("There is more than one <%s> section; only the first one counts", name))
		}
	}
	if !ordered {
		a.warn("section_order", "Sections appear in the wrong order; expected: analysis, plan, commands, task_complete")
	}
}

// maxTopTags bounds how many tags are looked at.
const maxTopTags = 64

// topTags returns the names of the tags that are in no other tag.
func topTags(content string) []string {
	var names []string
	for len(names) < maxTopTags {
		at := openTag.FindStringSubmatchIndex(content)
		if at == nil {
			break
		}
		tag := content[at[0]:at[1]]
		rest := content[at[1]:]
		if at[6] >= 0 || strings.HasSuffix(tag, "/>") {
			names = append(names, strings.TrimRight(strings.FieldsFunc(tag[1:], func(r rune) bool { return r == ' ' || r == '/' || r == '>' })[0], "\t\r\n"))
			content = rest
			continue
		}
		name := content[at[2]:at[3]]
		names = append(names, name)
		_, content, _ = strings.Cut(rest, "</"+name+">") // what is not closed holds the rest
	}
	return names
}

// readKeystrokes reads the elements of the commands section.
func readKeystrokes(a *answer, commands string) {
	type element struct{ attributes, text string }
	var found []element
	for rest := commands; ; {
		at := keystrokesTag.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		e := element{}
		if at[2] >= 0 {
			e.attributes = rest[at[2]:at[3]]
		}
		rest = rest[at[1]:]
		if !strings.HasSuffix(e.attributes, "/") {
			var closed bool
			if e.text, rest, closed = strings.Cut(rest, "</keystrokes>"); !closed {
				break
			}
		}
		found = append(found, e)
	}
	for i, e := range found {
		n := i + 1
		c := command{keystrokes: typable(e.text), seconds: xmlSeconds(a, e.attributes, n)}
		checkNewline(a, c, n, len(found))
		a.commands = append(a.commands, c)
	}
	checkEscapes(a)
}

func xmlSeconds(a *answer, attributes string, n int) float64 {
	seconds, given := defaultSeconds, false
	for _, m := range attribute.FindAllStringSubmatch(attributes, maxNamed) {
		name, quoted := m[1], m[2]
		switch quoted[0] {
		case '"':
		case '\'':
			a.warn(fmt.Sprintf("single_quotes:%d", n), fmt.Sprintf("Command %d: attribute '%s' has single quotes; use double ones", n, name))
		default:
			a.warn(fmt.Sprintf("unquoted_attribute:%d:%s", n, name), fmt.Sprintf("Command %d: attribute '%s' needs double quotes around its value", n, name))
			continue
		}
		if name != "duration" {
			a.warn(fmt.Sprintf("unknown_attribute:%d:%s", n, name), fmt.Sprintf("Command %d: attribute '%s' is unknown; there is only 'duration'", n, name))
			continue
		}
		if given {
			continue
		}
		given = true
		f, err := value.ParseFloat(quoted[1 : len(quoted)-1])
		if err != nil || !usableSeconds(float64(f)) {
			a.warn(fmt.Sprintf("invalid_duration:%d", n), fmt.Sprintf("Command %d has a duration that is no number, so %.1f is used", n, defaultSeconds))
			continue
		}
		seconds = float64(f)
	}
	if !given {
		a.warn(fmt.Sprintf("missing_duration:%d", n), fmt.Sprintf("Command %d has no duration attribute, so %.1f is used", n, defaultSeconds))
	}
	return seconds
}

// checkEscapes warns of what looks as if it was meant to be decoded. Each is told once.
func checkEscapes(a *answer) {
	has := func(part string) bool {
		return slices.ContainsFunc(a.commands, func(c command) bool { return strings.Contains(c.keystrokes, part) })
	}
	for _, e := range entities {
		if has(e) {
			a.warn("entity:"+e, fmt.Sprintf("Keystrokes hold %s, which is typed as it stands: write the character itself", e))
		}
	}
	if has(`\r\n`) {
		a.warn("crlf_escape", `Keystrokes hold \r\n, which is typed as it stands: use a line break`)
	}
}
