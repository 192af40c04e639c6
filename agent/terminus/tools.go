package terminus

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
)

const (
	tmux      = "tmux"
	asciinema = "asciinema"

	// Bounds of installing: of one command, and of all of them.
	installLimit      = 120 * time.Second
	installTotalLimit = 240 * time.Second
)

// manager is a package manager, and how it installs what is in "$@" without a question.
type manager struct{ name, install string }

// managers are looked for in this order.
func managers() []manager {
	return []manager{
		{"apt-get", "export DEBIAN_FRONTEND=noninteractive; apt-get -o Acquire::Retries=0 -o Acquire::http::Timeout=20 update; apt-get install -y --no-install-recommends \"$@\""},
		{"dnf", "dnf install -y \"$@\""},
		{"yum", "yum install -y \"$@\""},
		{"apk", "apk add --no-cache \"$@\""},
		{"pacman", "pacman -Sy --noconfirm \"$@\""},
		{"brew", "brew install \"$@\""},
		{"pkg", "ASSUME_ALWAYS_YES=yes pkg install -y \"$@\""},
		{"zypper", "zypper --non-interactive install \"$@\""},
	}
}

// tools are what a sandbox has.
type tools struct {
	tmux, asciinema bool
	manager         string // empty for none
}

// installer sees to the programs that the agent needs.
type installer struct {
	env  agent.Env
	vars []string
	now  func() time.Time
	said string // the end of what the last command that failed printed
}

// prepare installs what is missing, as root (section 4.2), and returns what there is then.
func (i *installer) prepare(ctx context.Context, wish record) (tools, error) {
	have, err := i.look(ctx)
	if err != nil {
		return have, err
	}
	missing := have.missing(wish)
	if len(missing) > 0 && have.manager != "" {
		if have, err = i.install(ctx, have, missing); err != nil {
			return have, err
		}
	}
	if !have.tmux {
		return have, i.noTmux(have)
	}
	return have, nil
}

// missing lists what is to be installed. Where nothing else has to be, a recording that
// nobody asked for is not worth the time.
func (t tools) missing(wish record) []string {
	var list []string
	if !t.tmux {
		list = append(list, tmux)
	}
	if !t.asciinema && (wish == recordAlways || wish == recordIfEasy && !t.tmux) {
		list = append(list, asciinema)
	}
	return list
}

// install tries all of the programs together, and then, where that did not bring tmux,
// tmux alone: not every distribution has asciinema.
func (i *installer) install(ctx context.Context, have tools, missing []string) (tools, error) {
	until := i.now().Add(installTotalLimit)
	for _, packages := range [][]string{missing, {tmux}} {
		limit := min(installLimit, until.Sub(i.now()))
		if limit <= 0 || have.tmux && len(packages) == 1 && packages[0] == tmux {
			break
		}
		if err := i.runManager(ctx, have.manager, packages, limit); err != nil {
			return have, err
		}
		now, err := i.look(ctx)
		if err != nil {
			return have, err
		}
		if have = now; have.tmux || len(missing) == 1 {
			break
		}
	}
	return have, nil
}

func (i *installer) runManager(ctx context.Context, name string, packages []string, limit time.Duration) error {
	list := managers()
	m := list[slices.IndexFunc(list, func(m manager) bool { return m.name == name })]
	said := bounded.NewTail(maxSaid)
	status, err := i.env.Sandbox.Exec(ctx, sandbox.Command{
		Argv: append([]string{"bash", "-c", m.install, agentName}, packages...),
		Env:  i.vars, User: "root", Stdout: said, Timeout: limit,
	})
	switch {
	case err != nil:
		return fmt.Errorf("installing %s: %w", strings.Join(packages, " and "), err)
	case status.TimedOut:
		i.said = fmt.Sprintf("%s did not end within %s", name, limit.Round(time.Second))
	case status.Code != 0:
		i.said = fmt.Sprintf("%s: exit %d: %s", name, status.Code, strings.TrimSpace(said.String()))
	default:
		return nil
	}
	if i.env.Warn != nil {
		i.env.Warn("installing %s in the sandbox: %s", strings.Join(packages, " and "), i.said)
	}
	return nil
}

// look finds out what is there.
func (i *installer) look(ctx context.Context) (tools, error) {
	var names []string
	for _, m := range managers() {
		names = append(names, m.name)
	}
	out := bounded.NewTail(maxSaid)
	status, err := i.env.Sandbox.Exec(ctx, sandbox.Command{
		Shell: "tmux -V >/dev/null 2>&1 && echo tmux; asciinema --version >/dev/null 2>&1 && echo asciinema; " +
			"for m in " + strings.Join(names, " ") + `; do if command -v "$m" >/dev/null 2>&1; then echo "manager $m"; break; fi; done; exit 0`,
		Env: i.vars, User: "root", Stdout: out, Timeout: installLimit,
	})
	if err != nil {
		return tools{}, fmt.Errorf("looking for tmux in the sandbox: %w", err)
	}
	if status.NotStarted {
		return tools{}, exception.Errorf(exception.RuntimeError, "agent %s needs bash in the image: %s", agentName, strings.TrimSpace(out.String()))
	}
	var t tools
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSpace(line)
		name, ok := strings.CutPrefix(line, "manager ")
		switch {
		case line == tmux:
			t.tmux = true
		case line == asciinema:
			t.asciinema = true
		case ok && slices.Contains(names, name):
			t.manager = name
		}
	}
	return t, nil
}

func (i *installer) noTmux(have tools) error {
	why := i.said
	switch {
	case have.manager == "":
		why = "it has no package manager that is known"
	case why == "":
		why = have.manager + " brought none"
	}
	return exception.Errorf(exception.RuntimeError, "agent %s needs tmux, which the image does not have and which could not be installed (%s); "+
		"let the image bring it, for example with a line of its Dockerfile: RUN apt-get update && apt-get install -y tmux", agentName, why)
}
