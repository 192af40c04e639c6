package terminus

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/shellword"
	"github.com/proctor-run/proctor/sandbox"
)

const (
	// logs is where the sandbox sees the agent's log directory.
	logs = "/logs/agent"

	// historyLimit is how many lines of a terminal tmux keeps. It has to be set before
	// the pane is there.
	historyLimit = 10_000_000

	// What is read of a terminal at a time is bounded in lines and in bytes, so that a
	// step costs no more after a program that printed millions of lines. The end of what
	// is longer counts.
	maxCaptureLines = 50_000
	maxCapture      = 4 << 20

	// maxSaid bounds what is quoted of a command that failed, in bytes.
	maxSaid = 1000

	// maxSends bounds how many commands of tmux go into one of the sandbox, whose
	// arguments have a bound, too.
	maxSends = 4
)

// session is the terminal in a sandbox. Each of its methods is one command there.
type session struct {
	env agent.Env
	// vars are the agent's own, KEY=VALUE.
	vars          []string
	width, height int64
	now           func() time.Time
	sleep         func(ctx context.Context, d time.Duration) error
}

// run runs a command as the agent's user.
func (s *session) run(ctx context.Context, shell string, stdout, stderr *bounded.Tail) (int, error) {
	cmd := sandbox.Command{Shell: shell, Env: s.vars, User: s.env.User, Stdout: stdout}
	if stderr != nil {
		cmd.Stderr = stderr
	}
	status, err := s.env.Sandbox.Exec(ctx, cmd)
	switch {
	case err != nil:
		return 0, fmt.Errorf("using the terminal: %w", err)
	case status.NotStarted:
		return 0, exception.Errorf(exception.RuntimeError, "agent %s needs bash in the image: %s", agentName, strings.TrimSpace(stdout.String()))
	}
	return status.Code, nil
}

// start opens the terminal (section 4.2). Its shell has the agent's variables because
// the server of tmux is started with them: on a command line everybody could read them.
func (s *session) start(ctx context.Context) error {
	said := bounded.NewTail(maxSaid)
	code, err := s.run(ctx, fmt.Sprintf("export TERM=xterm-256color && export SHELL=/bin/bash && "+
		`tmux start-server \; set-option -g history-limit %d \; new-session -x %d -y %d -d -s %s 'bash --login' \; pipe-pane -t %s %s`,
		historyLimit, s.width, s.height, sessionName, sessionName, shellword.Quote(s.pipe())), said, nil)
	if err != nil {
		return err
	}
	if code != 0 {
		return exception.Errorf(exception.RuntimeError, "Failed to start tmux session (exit %d): %s", code, strings.TrimSpace(said.String()))
	}
	return nil
}

// pipe is the command that keeps what the terminal shows, up to the bound of output files.
func (s *session) pipe() string {
	const file = logs + "/terminus_2.pane"
	if s.env.OutputLimit <= 0 {
		return "cat > " + file
	}
	const block = 512
	return fmt.Sprintf("ulimit -f %d; exec cat > %s", s.env.OutputLimit/block+1, file)
}

// alive reports whether the terminal is still there.
func (s *session) alive(ctx context.Context) (bool, error) {
	code, err := s.run(ctx, "tmux has-session -t "+sessionName, bounded.NewTail(maxSaid), nil)
	return code == 0, err
}

// capture reads the terminal and reports whether it is still there. Of one that is not,
// there is nothing to read.
func (s *session) capture(ctx context.Context) (c capture, alive bool, err error) {
	full, visible := bounded.NewTail(maxCapture), bounded.NewTail(maxCapture)
	code, err := s.run(ctx, fmt.Sprintf("tmux capture-pane -p -S -%[3]d -t %[1]s 2>/dev/null | tail -c %[2]d; "+
		"{ tmux capture-pane -p -t %[1]s 2>/dev/null | tail -c %[2]d; } >&2; tmux has-session -t %[1]s 2>/dev/null", sessionName, maxCapture, maxCaptureLines), full, visible)
	if err != nil {
		return c, false, err
	}
	text := func(t *bounded.Tail) string { return validText(string(t.Bytes())) }
	c = capture{full: text(full), visible: text(visible)}
	c.cut = len(c.full) >= maxCapture || strings.Count(c.full, "\n") >= maxCaptureLines
	return c, code == 0, nil
}

// send types keys and waits until seconds have passed since it began.
func (s *session) send(ctx context.Context, keys string, seconds float64) error {
	began := s.now()
	commands := sendCommands(keys)
	for len(commands) > 0 {
		n := min(maxSends, len(commands))
		said := bounded.NewTail(maxSaid)
		code, err := s.run(ctx, strings.Join(commands[:n], " && "), said, nil)
		if err != nil {
			return err
		}
		if code != 0 {
			return exception.Errorf(exception.RuntimeError, "%s: failed to send non-blocking keys: exit %d: %s", agentName, code, strings.TrimSpace(said.String()))
		}
		commands = commands[n:]
	}
	if seconds <= 0 {
		return nil
	}
	wait := time.Duration(seconds*float64(time.Second)) - s.now().Sub(began)
	if wait <= 0 {
		return nil
	}
	return s.sleep(ctx, wait)
}

// startRecording lets asciinema record the terminal.
func (s *session) startRecording(ctx context.Context) error {
	if err := s.send(ctx, "asciinema rec --stdin "+logs+"/recording.cast\n", 1); err != nil {
		return err
	}
	return s.send(ctx, "clear\n", 0)
}

const (
	skillsLimit   = 10 * time.Second
	maxSkills     = 200
	maxSkillBytes = 64 << 10
)

// skillFiles reads the manifests of the skills. What cannot be read is left out.
func (s *session) skillFiles(ctx context.Context) ([]skillFile, error) {
	dir := s.env.SkillsDir
	if dir == "" {
		return nil, nil
	}
	out := bounded.NewTail(maxSkills * (maxSkillBytes + 4096))
	// Zero bytes are in no path, and in no text.
	_, err := s.env.Sandbox.Exec(ctx, sandbox.Command{
		Shell: fmt.Sprintf(`find %s -mindepth 2 -maxdepth 2 -name SKILL.md -type f 2>/dev/null | sort | head -n %d | `+
			`while IFS= read -r f; do printf '%%s\0' "$f"; head -c %d "$f"; printf '\0'; done`, shellword.Quote(dir), maxSkills, maxSkillBytes),
		Env: s.vars, User: s.env.User, Stdout: out, Stderr: bounded.NewTail(maxSaid), Timeout: skillsLimit,
	})
	if err != nil {
		return nil, fmt.Errorf("looking for skills: %w", err)
	}
	var files []skillFile
	parts := strings.Split(string(out.Bytes()), "\x00")
	for i := 0; i+1 < len(parts); i += 2 {
		files = append(files, skillFile{path: parts[i], content: validText(parts[i+1])})
	}
	return files, nil
}
