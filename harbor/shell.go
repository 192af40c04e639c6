package harbor

import (
	"path"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/shellword"
	"github.com/proctor-run/proctor/value"
)

// Quote makes a word of a shell command for the system: for bash, single
// quotes where they are needed; for cmd.exe, backslashes for slashes and double
// quotes. The error is for words that cmd.exe cannot take safely.
func (os OS) Quote(word string) (string, error) {
	if os == Windows {
		return quoteWindows(word)
	}
	return shellword.Quote(word), nil
}

func quoteWindows(word string) (string, error) {
	for _, mark := range [...]string{`"`, "%", "!", "\r", "\n", "\x00"} {
		if strings.Contains(word, mark) {
			return "", exception.Errorf(exception.ValueError, "Value %s contains %s, which cannot be safely embedded in a cmd.exe command string",
				value.Repr(value.Str(word)), value.Repr(value.Str(mark)))
		}
	}
	word = strings.ReplaceAll(word, "/", `\`)
	if strings.ContainsAny(word, " &|<>()^") {
		return `"` + word + `"`, nil
	}
	return word, nil
}

// ScriptCommand returns the command that runs a script inside an environment,
// with its output in the file stdout unless that is empty (section 6.2). Paths
// are given with slashes.
func (os OS) ScriptCommand(script, stdout string) (string, error) {
	command, err := os.Quote(script)
	if err != nil {
		return "", err
	}
	if os == Windows {
		command = "cmd /c " + command
	}
	if stdout == "" {
		return command, nil
	}
	target, err := os.Quote(stdout)
	if err != nil {
		return "", err
	}
	return "(" + command + ") > " + target + " 2>&1", nil
}

// NeedsChmod reports whether a script must be made executable before it runs.
func (os OS) NeedsChmod(script string) bool {
	return os != Windows && strings.EqualFold(path.Ext(script), ".sh")
}
