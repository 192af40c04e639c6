package shell

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/infra"
)

// tool runs commands and moves files in a container.
type tool struct {
	*cube.ActionTool
	container  cube.Container
	cfg        BashToolConfig
	maxTimeout *int
	env        cube.Map[string]
}

var _ cube.Tool = (*tool)(nil)

// baseEnv keeps programs from paging and from drawing progress bars.
var baseEnv = [...][2]string{
	{"PAGER", "cat"}, {"MANPAGER", "cat"}, {"LESS", "-R"}, {"PIP_PROGRESS_BAR", "off"}, {"TQDM_DISABLE", "1"},
}

func newTool(name string, cfg BashToolConfig, container cube.Container) (*tool, error) {
	t := base(cfg, container)
	return t, t.declare(name, cube.Func("read_file", readDescription, t.readFile))
}

func newTerminalTool(name string, cfg TerminalToolConfig, container cube.Container) (*tool, error) {
	t := base(cfg.BashToolConfig, container)
	t.maxTimeout = cfg.MaxTimeout
	return t, t.declare(name, cube.Func("read_file", readDescription, func(ctx context.Context, in terminalReadInput) (any, error) {
		return t.readFile(ctx, readInput(in))
	}))
}

const readDescription = "Read a text file, or a range of its lines."

func base(cfg BashToolConfig, container cube.Container) *tool {
	t := &tool{container: container, cfg: cfg}
	for _, kv := range baseEnv {
		t.env.Set(kv[0], kv[1])
	}
	for k, v := range cfg.ExtraEnv.All() {
		t.env.Set(k, v)
	}
	return t
}

func (t *tool) declare(name string, read cube.Declaration) (err error) {
	write := cube.Func("write_file", "Write text to a file, replacing what it had. Missing directories are made.", t.writeFile)
	if !t.cfg.EnableFileActions {
		read, write = read.Hidden(), write.Hidden()
	}
	t.ActionTool, err = cube.NewActionTool(name,
		cube.Func("bash", "Run a shell command and return what it prints.", t.bash), read, write)
	return err
}

type bashInput struct {
	Command string `json:"command" desc:"The command line. Each call has a shell of its own."`
	Timeout int    `json:"timeout" desc:"Seconds after which the command is ended." default:"120"`
}

func (t *tool) bash(ctx context.Context, in bashInput) (any, error) {
	timeout := in.Timeout
	if limit := t.maxTimeout; limit != nil && (timeout <= 0 || timeout > *limit) {
		timeout = *limit // 0 is no timeout, and must not get around the cap
	}
	if timeout < 0 {
		return "Error: timeout must be a number of seconds, or 0 for none.", nil
	}
	r, err := t.container.Exec(ctx, cube.ExecRequest{
		Command: in.Command,
		Timeout: time.Duration(timeout) * time.Second,
		Workdir: t.cfg.WorkingDir,
		Env:     t.env,
	})
	if err != nil {
		return nil, err
	}
	if t.cfg.OutputFormat == "returncode_envelope" {
		return envelope(r, timeout, t.cfg.MaxOutputBytes), nil
	}
	return truncate(plain(r, timeout), t.cfg.MaxOutputBytes), nil
}

func streams(r cube.ExecResult) []string {
	var parts []string
	for _, s := range []string{r.Stdout, r.Stderr} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return parts
}

func plain(r cube.ExecResult, timeout int) string {
	parts := streams(r)
	switch r.ExitCode {
	case 0:
	case cube.TimedOutCode:
		parts = append(parts, fmt.Sprintf("[timed out after %ds]", timeout))
	default:
		parts = append(parts, fmt.Sprintf("[exit_code: %d]", r.ExitCode))
	}
	if len(parts) == 0 {
		return noOutput
	}
	return strings.Join(parts, "\n")
}

const noOutput = "(no output)"

// envelope truncates what a command printed, never the envelope around it:
// agents parse that.
func envelope(r cube.ExecResult, timeout, limit int) string {
	body := strings.Join(streams(r), "\n")
	if body == "" {
		body = noOutput
	}
	if r.ExitCode == cube.TimedOutCode {
		body += fmt.Sprintf("\n[timed out after %ds]", timeout)
	}
	return fmt.Sprintf("<returncode>%d</returncode>\n<output>\n%s\n</output>", r.ExitCode, truncate(body, limit))
}

// truncate keeps a fifth of limit bytes from the beginning of s and the rest
// from its end, and says how much is missing between. Characters that are cut
// are dropped.
func truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	limit = max(limit, 0)
	head := limit / 5
	return whole(s[:head]) + fmt.Sprintf("\n[... %d bytes elided ...]\n", len(s)-limit) + whole(s[len(s)-(limit-head):])
}

// whole drops what is no whole character.
func whole(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "")
}

// readInput is what read_file takes. Models often write line numbers as text;
// the terminal tool says so in its schema, both accept it.
type readInput struct {
	Path      string     `json:"path" desc:"Path of the file; relative ones start in the working directory."`
	LineStart cube.Value `json:"line_start" type:"int" desc:"First line, from 1." default:"null"`
	LineEnd   cube.Value `json:"line_end" type:"int" desc:"Last line." default:"null"`
}

type terminalReadInput struct {
	Path      string     `json:"path" desc:"Path of the file; relative ones start in the working directory."`
	LineStart cube.Value `json:"line_start" type:"str" desc:"First line, from 1, or a range of lines." default:"null"`
	LineEnd   cube.Value `json:"line_end" type:"str" desc:"Last line." default:"null"`
}

func (t *tool) exec(ctx context.Context, command string) (cube.ExecResult, error) {
	return t.container.Exec(ctx, cube.ExecRequest{Command: command, Workdir: t.cfg.WorkingDir})
}

func (t *tool) readFile(ctx context.Context, in readInput) (any, error) {
	start, end := lineRange(in.LineStart, in.LineEnd)
	command := "cat " + infra.ShellQuote(in.Path)
	if start != nil || end != nil {
		first, last := 1, "$"
		if start != nil {
			first = max(1, *start)
		}
		if end != nil {
			last = strconv.Itoa(*end)
		}
		command = fmt.Sprintf("sed -n '%d,%sp' %s", first, last, infra.ShellQuote(in.Path))
	}
	r, err := t.exec(ctx, command)
	switch {
	case err != nil:
		return nil, err
	case r.ExitCode != 0:
		return fmt.Sprintf("Error reading %s: %s", in.Path, failure(r)), nil
	case start == nil && end == nil && len(r.Stdout) > t.cfg.MaxOutputBytes:
		return fmt.Sprintf("File too large (%d KB). Use line_start/line_end to read a specific range.", len(r.Stdout)/1024), nil
	}
	return r.Stdout, nil
}

func failure(r cube.ExecResult) string {
	if r.Stderr != "" {
		return r.Stderr
	}
	return r.Stdout
}

type writeInput struct {
	Path    string `json:"path" desc:"Path of the file; relative ones start in the working directory."`
	Content string `json:"content" desc:"The whole new content."`
}

// maxWord bounds one quoted word of a command line, in bytes: Linux takes 128
// KiB for all of an argument, and the command is one.
const maxWord = 96 << 10

func (t *tool) writeFile(ctx context.Context, in writeInput) (any, error) {
	r, err := t.exec(ctx, "mkdir -p "+infra.ShellQuote(path.Dir(in.Path)))
	for rest, redirect := in.Content, " > "; err == nil && r.ExitCode == 0 && (rest != "" || redirect == " > "); redirect = " >> " {
		var word string
		word, rest = quotedWord(rest)
		r, err = t.exec(ctx, "printf '%s' "+word+redirect+infra.ShellQuote(in.Path))
	}
	if err != nil {
		return nil, err
	}
	if r.ExitCode != 0 {
		return fmt.Sprintf("Error writing %s: %s", in.Path, failure(r)), nil
	}
	return fmt.Sprintf("Wrote %d bytes to %s", utf8.RuneCountInString(in.Content), in.Path), nil
}

// quotedWord quotes as much of s as fits into one word, whole characters, and
// returns what is left.
func quotedWord(s string) (word, rest string) {
	size, end := 0, len(s)
	for i, r := range s {
		width := utf8.RuneLen(r)
		switch r {
		case '\'':
			width = len(`'\''`)
		case utf8.RuneError:
			width = utf8.UTFMax // as many bytes as it may have
		}
		if size += width; size > maxWord {
			end = i
			break
		}
	}
	return "'" + strings.ReplaceAll(s[:end], "'", `'\''`) + "'", s[end:]
}
