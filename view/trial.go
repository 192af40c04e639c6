package view

import (
	"net/http"
	"path/filepath"
	"strings"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/traces"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/reward"
)

// trialPage is one trial.
type trialPage struct {
	Frame        frame
	look         look
	Name         string
	Task         link
	Agent        string
	Href         string
	State        report.State
	Took         string
	Started      string
	Rewards      []figure
	Cause        *causeBox
	Steps        []stepRow
	Timeline     []phaseBar
	Notes        []noteRow
	Suspicions   []string
	Warnings     []string
	Later        []causeBox // errors after the cause
	Usage        []figure   // of models
	Trajectories []link
	Recordings   []link // of terminals
	Logs         []logRow
	Files        []fileRow
	More         int // files that are not listed
	Network      *network
	Settings     []noteRow
	Earlier      []string // directories of attempts that were set aside
	Before       *link    // the trial before this one in the job, and the one behind it
	After        *link
}

// Look is how the outcome is shown.
func (p *trialPage) Look() look { return p.look }

type causeBox struct {
	Phase, Type, Reason, Message, Traceback string
}

type stepRow struct {
	Name, Rewards, Error string
}

// phaseBar is a phase on a line that is the whole trial, in percent.
type phaseBar struct {
	Name, Kind, Begins, Takes string
	X, Width                  float64
}

type noteRow struct{ Name, Text string }

type logRow struct {
	Name, Href, Text string
	Cut              bool
}

// logLines is how much of the end of a log the page of its trial shows.
const logLines = 40

func (s *Server) serveTrial(w http.ResponseWriter, r *http.Request) error {
	at, name, dir, err := s.trialOf(r)
	if err != nil {
		return err
	}
	t, err := report.ReadTrial(dir, logLines)
	if err != nil {
		return err
	}
	p := &trialPage{
		Frame: frame{Title: label(name), Crumbs: s.jobCrumbs(at)}, Name: label(name), Href: at.trialHref(name),
		Task: link{label(t.Task), query(at.href(), "task", t.Task) + "#trials"}, Agent: label(t.Agent), State: t.State,
	}
	if t.State == report.Running && !s.still {
		p.Frame.Changes = at.href() + "/changes"
	}
	p.fill(t)
	p.Network, p.Settings = networkOf(dir, p.Href), settingsOf(dir)
	p.neighbours(at, s.trialsOf(at.path), name)
	for i, f := range trajectoriesOf(dir) {
		text := "trajectory"
		if i > 0 {
			text = f
		}
		p.Trajectories = append(p.Trajectories, link{label(text), query(p.Href+"/trajectory", "file", f)})
	}
	if hasEpisode(dir) {
		p.Trajectories = append(p.Trajectories, link{"episode", p.Href + "/episode"})
	}
	if p.Files, p.More, err = filesOf(dir, p.Href); err != nil {
		return err
	}
	p.recordings()
	s.render(w, http.StatusOK, "trial", p)
	return nil
}

// recordings are those among the files.
func (p *trialPage) recordings() {
	for _, f := range p.Files {
		if isRecording(f.path) {
			p.Recordings = append(p.Recordings, link{"recording of the terminal", query(p.Href+"/recording", "file", f.path)})
		}
	}
}

func (p *trialPage) fill(t *report.Trial) {
	var rewards *reward.Rewards
	if d := t.Document; d != nil {
		if d.VerifierResult != nil {
			rewards = d.VerifierResult.Rewards
		}
		record := jobdir.RecordOf(d)
		u := record.Usage
		p.Usage = usage(dollars(u.CostUSD), tokens(u.NInputTokens), tokens(u.NCacheTokens), tokens(u.NOutputTokens))
	}
	x, has := firstReward(rewards)
	p.look = lookOf(t.Outcome, x, has)
	if t.State == report.Running {
		p.look.Text = "running"
	}
	for name, v := range rewards.All() {
		p.Rewards = append(p.Rewards, figure{label(name), shortNumber(v)})
	}
	if t.Result != nil {
		p.Took = seconds(t.Result.Seconds)
	}
	if c := t.Cause; c != nil {
		p.Cause = &causeBox{label(c.Phase), label(c.Type), string(c.ReasonCode), prose(c.Message), prose(c.Traceback)}
	}
	for _, step := range t.Steps {
		row := stepRow{Name: label(step.Name), Rewards: prose(string(step.Rewards))}
		if step.Exception != nil {
			row.Error = label(step.Exception.Type)
		}
		p.Steps = append(p.Steps, row)
	}
	p.timeline(t)
	p.notes(t)
	for _, l := range t.Logs {
		p.Logs = append(p.Logs, logRow{Name: label(l.File), Href: p.Href + "/files/" + escapePath(l.File) + "?at=end", Text: strings.Join(shortLines(l.Lines), "\n"), Cut: l.Cut})
	}
	for _, e := range t.Earlier {
		p.Earlier = append(p.Earlier, label(e))
	}
}

func (p *trialPage) timeline(t *report.Trial) {
	end := 0.0
	if t.Result != nil {
		end = t.Result.Seconds
	}
	for _, ph := range t.Phases {
		end = max(end, ph.Offset+ph.Seconds)
	}
	for _, ph := range t.Phases {
		b := phaseBar{Name: label(ph.Name), Kind: strings.ReplaceAll(string(ph.Kind), " ", "-"), Begins: seconds(ph.Offset), Takes: seconds(ph.Seconds), X: ratio(ph.Offset, end)}
		b.Width = min(max(ratio(ph.Seconds, end), 0.5), 100-b.X)
		p.Timeline = append(p.Timeline, b)
	}
}

// notes are what was noted beside the result.
func (p *trialPage) notes(t *report.Trial) {
	n := t.Notes
	if n == nil {
		return
	}
	add := func(name, text string) {
		if text != "" {
			p.Notes = append(p.Notes, noteRow{name, prose(text)})
		}
	}
	environment := n.Backend
	if n.Runtime != "" {
		environment += ", " + n.Runtime
	}
	add("environment", environment)
	add("image", n.ImageDigest)
	add("agent's code", n.AgentDigest)
	add("supervised by", n.Supervision)
	if n.Hardened {
		add("sandbox", "hardened")
	}
	if n.SealedVerifier {
		add("reward channel", "sealed")
	}
	if k := n.AgentKilled; k != nil {
		text := "ended by force, all its processes are proven gone"
		if !k.ProvenGone {
			text = "ended by force, not proven gone: " + k.Error
		}
		add("agent", text)
	}
	add("episode", endOf(n))
	add("kept sandbox", n.Kept)
	add("agent installed by", n.SetupFrom)
	add("replayed from", n.ReplayedFrom)
	for _, x := range n.Suspicions() {
		p.Suspicions = append(p.Suspicions, prose(x))
	}
	for _, x := range n.Warnings {
		p.Warnings = append(p.Warnings, prose(x))
	}
	for _, e := range n.Errors {
		if t.Cause == nil || e.Type != t.Cause.Type || e.Message != t.Cause.Message {
			p.Later = append(p.Later, causeBox{Phase: label(e.Phase), Type: label(e.Type), Message: prose(e.Message)})
		}
	}
}

// neighbours are the trials before and behind this one by name.
func (p *trialPage) neighbours(at place, names []string, name string) {
	for i, n := range names {
		if n != name {
			continue
		}
		if i > 0 {
			p.Before = &link{label(names[i-1]), at.trialHref(names[i-1])}
		}
		if i+1 < len(names) {
			p.After = &link{label(names[i+1]), at.trialHref(names[i+1])}
		}
	}
}

// trajectoriesOf are the trajectories of a trial, the one that its agent began with
// first, below its directory with slashes.
func trajectoriesOf(dir string) []string {
	parts, err := traces.Parts(dir)
	if err != nil || len(parts) == 0 {
		if parts, err = traces.Files(dir); err != nil {
			return nil // what is no trajectory is among the files
		}
	}
	var names []string
	for _, f := range parts {
		if name, err := filepath.Rel(dir, f.Path()); err == nil && filepath.IsLocal(name) {
			names = append(names, filepath.ToSlash(name))
		}
	}
	return names
}
