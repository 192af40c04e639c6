package trial

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
)

const (
	leftLimit = 10 * time.Second
	// leftOutput bounds the process list that is read, in bytes.
	leftOutput = 1 << 20
	maxNames   = 20
	// ticks of a process's start time in a second: what Linux tells programs
	// on every architecture.
	ticksPerSecond = 100
)

// leftScript lists all processes, then its own number and how long the system
// has been up.
const leftScript = `cat /proc/[0-9]*/stat 2>/dev/null; echo; echo $$; read -r up _ < /proc/uptime; echo "$up"`

// noteLeft notes which processes an agent that ended by itself has left
// running. They stay, since tasks rely on them; but they can write wherever
// the tests do. The task's own solution is not asked.
func (a *attempt) noteLeft(ctx context.Context) {
	a.notes.AgentLeft = nil
	_, idle := a.agent.(agent.Nop)
	if a.sb == nil || a.agentKilled || a.oracle != nil || idle {
		return
	}
	lctx, cancel := context.WithTimeout(ctx, leftLimit)
	defer cancel()
	out := bounded.NewTail(leftOutput)
	since := a.r.Now().Sub(a.born.at)
	if _, err := a.sb.Exec(lctx, sandbox.Command{Shell: leftScript, User: "root", Stdout: out}); err != nil {
		return // only a note is missing; what is really wrong shows in what follows
	}
	if names := bornWithin(since, out.Bytes()); len(names) > 0 {
		a.notes.AgentLeft = &LeftNote{Processes: len(names), Names: names[:min(len(names), maxNames)]}
	}
}

// bornWithin reads the output of leftScript: the names of the living processes
// that are not older than age, but for the script's own.
func bornWithin(age time.Duration, list []byte) []string {
	stats, end, _ := bytes.Cut(list, []byte("\n\n"))
	self, uptime, _ := strings.Cut(strings.TrimSpace(string(end)), "\n")
	up, err := strconv.ParseFloat(uptime, 64)
	if err != nil {
		return nil
	}
	parents := map[string]string{}
	type process struct{ pid, name string }
	var young []process
	for line := range bytes.Lines(stats) {
		pid, name, fields, ok := parseStat(string(line))
		if !ok {
			continue
		}
		parents[pid] = fields[1]
		started, err := strconv.ParseFloat(fields[19], 64)
		if err == nil && fields[0] != "Z" && up-started/ticksPerSecond <= age.Seconds() {
			young = append(young, process{pid, name})
		}
	}
	var own []string // the script with what started it
	for pid := self; pid != "" && len(own) <= len(parents); pid = parents[pid] {
		own = append(own, pid)
	}
	names := []string{}
	for _, p := range young {
		if !slices.Contains(own, p.pid) && parents[p.pid] != self {
			names = append(names, p.name)
		}
	}
	return names
}

// parseStat takes a line of /proc/PID/stat apart; fields begin with the state.
// The name may hold anything.
func parseStat(line string) (pid, name string, fields []string, ok bool) {
	pid, rest, found := strings.Cut(line, " (")
	end := strings.LastIndex(rest, ") ")
	if !found || end < 0 {
		return "", "", nil, false
	}
	fields = strings.Fields(rest[end+2:])
	return pid, rest[:end], fields, len(fields) >= 20
}
