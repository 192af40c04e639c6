package harbor

import (
	"regexp"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/homedir"
	"github.com/proctor-run/proctor/value"
)

// canaryLine is matched against whole lines without the white space around
// them. It also takes a heading that happens to hold the word.
var canaryLine = regexp.MustCompile(`(?i)^(?:<!--.*canary.*-->|#.*canary.*)$`)

// StepInstruction reads the instruction of a step (section 1.5).
func (t *Task) StepInstruction(name string) (string, error) {
	return t.instruction(pyJoin(t.StepDir(name), "instruction.md"))
}

// instruction reads an instruction file as the agent gets it: line ends as LF,
// without canary and blank lines at the top, with the extra texts behind it.
func (t *Task) instruction(path string) (string, error) {
	text, err := readText(path)
	if err != nil {
		return "", err
	}
	return strings.Join(slices.Concat([]string{stripCanary(text)}, t.extra), "\n\n"), nil
}

func stripCanary(text string) string {
	lines := strings.Split(text, "\n")
	for len(lines) > 0 && canaryLine.MatchString(value.Strip(lines[0])) {
		lines = lines[1:]
	}
	for len(lines) > 0 && value.Strip(lines[0]) == "" {
		lines = lines[1:]
	}
	return strings.Join(lines, "\n")
}

func readText(path string) (string, error) {
	data, err := readBounded(path, maxInstructionSize)
	if err != nil {
		return "", err
	}
	return value.ReadText(data)
}

// readExtras reads the extra instruction files, as they are but for their line
// ends.
func readExtras(o LoadOptions) ([]string, error) {
	var texts []string
	for _, given := range o.ExtraInstructions {
		path := homedir.Expand(given, o.Home)
		if !exists(path) {
			return nil, exception.Errorf(exception.FileNotFoundError, "Extra instruction file not found: %s", given)
		}
		text, err := readText(path)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}
