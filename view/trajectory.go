package view

import (
	"cmp"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/jobdir/traces"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/value"
)

// trajectoryPage is what an agent did, step by step.
type trajectoryPage struct {
	Frame                      frame
	Name                       string
	Raw                        string
	Agent, Model               string
	Notes                      string
	Count                      string
	Input, Cache, Output, Cost string
	Parts                      []choice // the files of the trial's trajectory
	By                         *namer   // what names it, for one that is not the first
	Continued                  *link
	Subagents                  []subagentRow
	Steps                      []step
	Turns                      turns
}

type subagentRow struct {
	ID, Agent, Count, Anchor string
	By                       *link // the step that names it
	Steps                    []step

	id string
}

type step struct {
	ID        int
	Anchor    string
	Source    string
	About     []string
	Reasoning string
	Message   []piece
	Calls     []call
	Results   []result
	Copied    bool
}

// piece is a text or an image.
type piece struct {
	Text  string
	More  string // how much of it is left out
	Image string // where it is; empty for a text
	Alt   string
}

type call struct {
	Name, ID  string
	Arguments []argument
}

type argument struct {
	Name string
	Text piece
	Long bool // it needs lines of its own
}

type result struct {
	Of        string
	Pieces    []piece
	Subagents []link
}

const (
	// stepsPerPage is how many steps a page shows.
	stepsPerPage = 100
	// longestText is how much of a text is shown, and longestLabel of a name, in bytes.
	longestText  = 24 << 10
	longestLabel = 400
)

// source is where trajectories are.
type source struct {
	at     string // its address
	dir    string
	names  []string // of the trajectories, slash-separated below dir
	crumbs []crumb
}

func (s *Server) serveTrajectory(w http.ResponseWriter, r *http.Request) error {
	at, trial, dir, err := s.trialOf(r)
	if err != nil {
		return err
	}
	here := at.trialHref(trial)
	return s.showTrajectory(w, r, source{here, dir, trajectoriesOf(dir), append(s.jobCrumbs(at), crumb{label(trial), here})})
}

// serveBare shows a trajectory that is given by itself, and what it names beside it.
func (s *Server) serveBare(w http.ResponseWriter, r *http.Request) error {
	d, at, err := s.fileOf(r)
	if err != nil {
		return err
	}
	return s.showTrajectory(w, r, source{at, d.path, []string{d.file}, []crumb{{"Jobs", "/"}}})
}

// serveBareRaw is serveRaw for a trajectory that is given by itself: images alone.
func (s *Server) serveBareRaw(w http.ResponseWriter, r *http.Request) error {
	d, _, err := s.fileOf(r)
	if err != nil {
		return err
	}
	name := r.PathValue("path")
	if images[strings.ToLower(path.Ext(name))] == "" {
		return errNoPage
	}
	return sendFile(w, r, d.path, name)
}

// fileOf is the trajectory that an address names by its number.
func (s *Server) fileOf(r *http.Request) (d directory, at string, err error) {
	index, err := strconv.Atoi(r.PathValue("n"))
	if err != nil || index < 0 || index >= len(s.dirs) || s.dirs[index].file == "" {
		return d, "", errNoPage
	}
	return s.dirs[index], s.dirs[index].href(index), nil
}

func (s *Server) showTrajectory(w http.ResponseWriter, r *http.Request, src source) error {
	if len(src.names) == 0 {
		return errNoPage
	}
	name := cmp.Or(r.URL.Query().Get("file"), src.names[0])
	file, ok := trajectoryAt(src.dir, name)
	if !ok {
		return errNoPage
	}
	from, err := stepOf(r)
	if err != nil {
		return err
	}
	t, from, err := s.readTrajectory(r.Context(), file, from)
	if err != nil {
		return err
	}
	p := &trajectoryPage{
		Frame: frame{Title: "Trajectory", Crumbs: src.crumbs}, Name: label(name), Raw: src.at + "/raw/" + escapePath(name),
	}
	for _, other := range src.names {
		p.Parts = append(p.Parts, choice{Text: label(other), Href: query(src.at+"/trajectory", "file", other), Chosen: other == name})
	}
	reader := trajectoryReader{at: src.at, dir: path.Dir(name)}
	p.fill(&reader, t, name, from)
	if err := s.wayBack(r.Context(), p, src, file, name); err != nil {
		return err
	}
	s.render(w, http.StatusOK, "trajectory", p)
	return nil
}

// stepOf is the step that a request wants to see first.
func stepOf(r *http.Request) (int, error) {
	from, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("from"), "1"))
	if err != nil || from < 1 {
		return 0, &badRequestError{"from: expected the number of a step"}
	}
	return from, nil
}

// trajectoryAt finds a trajectory of a directory, whatever it is called.
func trajectoryAt(dir, name string) (traces.File, bool) {
	file := traces.FileIn(dir, name)
	f, err := file.Open()
	if err != nil {
		return traces.File{}, false
	}
	_ = f.Close()
	return file, true
}

func (p *trajectoryPage) fill(reader *trajectoryReader, t *report.Trajectory, name string, from int) {
	d := t.Document
	p.Agent = label(d.Agent.Name + " " + d.Agent.Version)
	if d.Agent.ModelName != nil {
		p.Model = label(*d.Agent.ModelName)
	}
	if d.Notes != nil {
		p.Notes = prose(*d.Notes)
	}
	p.Count = count(t.Totals.Steps, "step")
	p.Input, p.Cache, p.Output = tokens(t.Totals.PromptTokens), tokens(t.Totals.CachedTokens), tokens(t.Totals.CompletionTokens)
	if t.Totals.CostUSD != nil {
		p.Cost = dollars(new(float64(*t.Totals.CostUSD)))
	}
	if next := d.ContinuedTrajectoryRef; next != nil {
		if to, ok := besideFile(path.Dir(name), *next); ok {
			p.Continued = &link{label(*next), query(reader.at+"/trajectory", "file", to)}
		}
	}
	for i := range d.Subagents {
		sub := &d.Subagents[i]
		row := subagentRow{Agent: label(sub.Agent.Name), Count: count(len(sub.Steps), "step")}
		if sub.TrajectoryID != nil {
			row.ID, row.Anchor, row.id = label(*sub.TrajectoryID), subagentAnchor(i+1), *sub.TrajectoryID
			reader.embedded(*sub.TrajectoryID, "#"+row.Anchor)
		}
		for k := range sub.Steps[:min(len(sub.Steps), stepsPerPage)] {
			row.Steps = append(row.Steps, reader.step(&sub.Steps[k], row.Anchor+"-"))
		}
		p.Subagents = append(p.Subagents, row)
	}
	p.page(reader, t, name, from)
}

// page shows the steps that were read, of which the first has this number.
func (p *trajectoryPage) page(reader *trajectoryReader, t *report.Trajectory, name string, from int) {
	for i := range t.Steps {
		p.Steps = append(p.Steps, reader.step(&t.Steps[i], ""))
	}
	p.Turns = stepTurns("Steps", from, from-1+len(t.Steps), t.Totals.Steps, func(n int) string {
		return query(reader.at+"/trajectory", "file", name, "from", strconv.Itoa(n))
	})
}

// stepTurns lead from some steps of all, numbered from 1, to others, which are at an
// address.
func stepTurns(what string, from, to, all int, at func(n int) string) turns {
	t := turns{What: what, From: strconv.Itoa(from), To: strconv.Itoa(to)}
	turn := func(text string, n int) *link { return &link{text, at(n)} }
	if from > 1 {
		t.First, t.Before = turn("first", 1), turn("earlier", max(from-stepsPerPage, 1))
	}
	if to < all {
		t.After, t.Last = turn("later", to+1), turn("last", lastPage(all))
	}
	return t
}

// lastPage is the first step of the last page of this many steps.
func lastPage(all int) int { return max(all-stepsPerPage+1, 1) }

// trajectoryReader makes steps for a page.
type trajectoryReader struct {
	at  string // of the trial
	dir string // of the file, below the trial's
	ids map[string]string
}

// embedded notes where the steps of a subagent are.
func (t *trajectoryReader) embedded(id, href string) {
	if t.ids == nil {
		t.ids = map[string]string{}
	}
	t.ids[id] = href
}

func (t *trajectoryReader) step(s *atif.Step, prefix string) step {
	out := step{
		ID: s.ID, Anchor: prefix + stepAnchor(s.ID), Source: string(s.Source), About: aboutStep(s), Message: t.pieces(s.Message),
		Copied: s.IsCopiedContext != nil && *s.IsCopiedContext,
	}
	if s.ReasoningContent != nil {
		out.Reasoning = prose(*s.ReasoningContent)
	}
	for i := range s.ToolCalls {
		out.Calls = append(out.Calls, callOf(&s.ToolCalls[i]))
	}
	if s.Observation == nil {
		return out
	}
	for i := range s.Observation.Results {
		out.Results = append(out.Results, t.result(s, &s.Observation.Results[i]))
	}
	return out
}

// aboutStep is what is said beside a step's number.
func aboutStep(s *atif.Step) []string {
	var parts []string
	if s.Timestamp != nil {
		parts = append(parts, label(*s.Timestamp))
	}
	if s.ModelName != nil {
		parts = append(parts, label(*s.ModelName))
	}
	if s.ReasoningEffort != nil {
		parts = append(parts, "effort "+label(value.Text(s.ReasoningEffort)))
	}
	m := s.Metrics
	if m == nil {
		return parts
	}
	if m.PromptTokens != nil {
		parts = append(parts, tokens(m.PromptTokens)+" in")
	}
	if m.CachedTokens != nil && m.CachedTokens.Sign() != 0 {
		parts = append(parts, tokens(m.CachedTokens)+" cached")
	}
	if m.CompletionTokens != nil {
		parts = append(parts, tokens(m.CompletionTokens)+" out")
	}
	if m.CostUSD != nil {
		parts = append(parts, dollars(m.CostUSD))
	}
	return parts
}

func callOf(c *atif.ToolCall) call {
	return call{Name: label(c.FunctionName), ID: label(c.ID), Arguments: argumentsOf(c.Arguments)}
}

func argumentsOf(o *value.Object) []argument {
	const inline = 80
	var out []argument
	for name, v := range o.All() {
		text := string(value.AppendDumps(nil, v, value.DumpsOptions{Unicode: true}))
		if s, ok := v.(value.Str); ok {
			text = string(s)
		}
		a := argument{Name: label(name), Text: textPiece(text)}
		a.Long = len(a.Text.Text) > inline || strings.Contains(a.Text.Text, "\n")
		out = append(out, a)
	}
	return out
}

func (t *trajectoryReader) result(s *atif.Step, r *atif.Result) result {
	var out result
	if r.SourceCallID != nil && len(s.ToolCalls) > 1 {
		out.Of = label(*r.SourceCallID)
		for _, c := range s.ToolCalls {
			if c.ID == *r.SourceCallID {
				out.Of = label(c.FunctionName)
			}
		}
	}
	if r.Content != nil {
		out.Pieces = t.pieces(*r.Content)
	}
	for _, sub := range r.Subagents {
		switch {
		case sub.TrajectoryPath != nil:
			if to, ok := besideFile(t.dir, *sub.TrajectoryPath); ok {
				out.Subagents = append(out.Subagents, link{label(*sub.TrajectoryPath), query(t.at+"/trajectory", "file", to)})
			}
		case sub.TrajectoryID != nil:
			out.Subagents = append(out.Subagents, link{label(*sub.TrajectoryID), t.ids[*sub.TrajectoryID]})
		}
	}
	return out
}

func (t *trajectoryReader) pieces(c atif.Content) []piece {
	if c.Parts == nil {
		if strings.TrimSpace(c.Text) == "" {
			return nil
		}
		return []piece{textPiece(c.Text)}
	}
	var all []piece
	for _, part := range c.Parts {
		switch {
		case part.Type == atif.TextPart && part.Text != nil:
			all = append(all, textPiece(*part.Text))
		case part.Type == atif.ImagePart && part.Source != nil:
			all = append(all, t.image(part.Source))
		}
	}
	return all
}

// image is one of the trial's own; one from elsewhere is named and not loaded.
func (t *trajectoryReader) image(s *atif.ImageSource) piece {
	to, ok := besideFile(t.dir, s.Path)
	if _, shown := images[strings.ToLower(path.Ext(to))]; !shown || strings.Contains(s.Path, ":") || !ok {
		return piece{Text: "[" + label(s.MediaType+" "+s.Path) + "]"}
	}
	return piece{Image: t.at + "/raw/" + escapePath(to), Alt: label(s.Path)}
}

func textPiece(text string) piece {
	head, more := cut(plain(strings.TrimRight(text, "\r\n\t ")), longestText)
	p := piece{Text: head}
	if more > 0 {
		p.More = size(int64(more))
	}
	return p
}
