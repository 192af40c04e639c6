package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/value"
)

// maxShownLine is how many characters of a line are shown.
const maxShownLine = 2000

func printTrajectory(w io.Writer, s *report.Trajectory, lines int, again bool) {
	p := trajPrinter{w: w, lines: lines}
	if again {
		p.line("")
	}
	p.head(s)
	for i := range s.Steps {
		p.step(&s.Steps[i])
	}
	if len(s.Steps) == 0 {
		p.line("none of its steps is among those that were asked for")
	}
}

type trajPrinter struct {
	w     io.Writer
	lines int
	// colours: w is not what they are for, but keeps them for that.
	colours bool
}

func (p *trajPrinter) line(text string) {
	if p.colours {
		_, _ = fmt.Fprintln(p.w, text)
		return
	}
	_, _ = lipgloss.Fprintln(p.w, text)
}

func (p *trajPrinter) head(s *report.Trajectory) {
	t := s.Document
	p.line(console.Bold(clean(s.File)))
	about := "agent " + clean(t.Agent.Name) + " " + clean(t.Agent.Version)
	if t.Agent.ModelName != nil {
		about += ", model " + clean(*t.Agent.ModelName)
	}
	if t.SessionID != nil {
		about += ", session " + clean(*t.SessionID)
	}
	p.line(about)
	parts := append([]string{count(s.Totals.Steps, "step")}, tokensText(s.Totals.PromptTokens, s.Totals.CachedTokens, s.Totals.CompletionTokens)...)
	if s.Totals.CostUSD != nil {
		parts = append(parts, costText(float64(*s.Totals.CostUSD)))
	}
	p.line(strings.Join(parts, ", "))
	if t.Notes != nil {
		p.text("  ", *t.Notes)
	}
	for i := range t.Subagents {
		sub := &t.Subagents[i]
		p.line(fmt.Sprintf("subagent %s: %s, %s", clean(*sub.TrajectoryID), clean(sub.Agent.Name), count(len(sub.Steps), "step")))
	}
}

func (p *trajPrinter) step(s *atif.Step) {
	p.line("")
	p.line(sourceStyle(s.Source).Render(strconv.Itoa(s.ID)+" "+string(s.Source)) + console.Dim(stepAbout(s)))
	if s.ReasoningContent != nil && *s.ReasoningContent != "" {
		p.dim("  ┆ ", *s.ReasoningContent)
	}
	p.content("  ", s.Message)
	for i := range s.ToolCalls {
		p.call(&s.ToolCalls[i])
	}
	if s.Observation == nil {
		return
	}
	for i := range s.Observation.Results {
		p.result(s, &s.Observation.Results[i])
	}
}

// sourceStyle makes the agent's own steps stand out.
func sourceStyle(s atif.Source) lipgloss.Style {
	if s == atif.Agent {
		return lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Cyan)
	}
	return lipgloss.NewStyle().Bold(true)
}

// stepAbout is what is said beside a step's number.
func stepAbout(s *atif.Step) string {
	var parts []string
	if s.Timestamp != nil {
		parts = append(parts, clean(*s.Timestamp))
	}
	if s.ModelName != nil {
		parts = append(parts, clean(*s.ModelName))
	}
	if s.ReasoningEffort != nil {
		parts = append(parts, "effort "+clean(value.Text(s.ReasoningEffort)))
	}
	if s.IsCopiedContext != nil && *s.IsCopiedContext {
		parts = append(parts, "copied")
	}
	if m := s.Metrics; m != nil {
		parts = append(parts, tokensText(m.PromptTokens, m.CachedTokens, m.CompletionTokens)...)
		if m.CostUSD != nil {
			parts = append(parts, costText(*m.CostUSD))
		}
		if len(m.CompletionTokenIDs) > 0 || len(m.Logprobs) > 0 {
			parts = append(parts, fmt.Sprintf("%s, %s", count(len(m.CompletionTokenIDs), "token id"), count(len(m.Logprobs), "logprob")))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "  " + strings.Join(parts, ", ")
}

func tokensText(prompt, cached, completion *value.Int) []string {
	var parts []string
	if prompt != nil {
		text := prompt.String() + " tokens in"
		if cached != nil && cached.Sign() != 0 {
			text += " (" + cached.String() + " cached)"
		}
		parts = append(parts, text)
	}
	if completion != nil {
		parts = append(parts, completion.String()+" tokens out")
	}
	return parts
}

func costText(usd float64) string { return fmt.Sprintf("$%.4f", usd) }

// maxInlineArguments is how long the arguments of a call on its own line may be.
const maxInlineArguments = 100

func (p *trajPrinter) call(c *atif.ToolCall) {
	inline := string(value.AppendDumps(nil, c.Arguments, value.DumpsOptions{Unicode: true}))
	if len(inline) <= maxInlineArguments && !strings.Contains(inline, `\n`) {
		p.line("  → " + console.Bold(clean(c.FunctionName)) + " " + clean(inline))
		return
	}
	p.line("  → " + console.Bold(clean(c.FunctionName)))
	for key, v := range c.Arguments.All() {
		text := string(value.AppendDumps(nil, v, value.DumpsOptions{Unicode: true}))
		if s, ok := v.(value.Str); ok {
			text = string(s)
		}
		p.text("      "+clean(key)+": ", text)
	}
}

func (p *trajPrinter) result(s *atif.Step, r *atif.Result) {
	mark := "  ← "
	if r.SourceCallID != nil && len(s.ToolCalls) > 1 {
		p.line(mark + "of " + clean(nameOfCall(s, *r.SourceCallID)))
		mark = "    "
	}
	if r.Content != nil {
		p.content(mark, *r.Content)
	}
	for i := range r.Subagents {
		p.line("  ← subagent " + clean(subagentName(&r.Subagents[i])))
	}
}

// subagentName is a file, or the id of an embedded trajectory.
func subagentName(r *atif.SubagentRef) string {
	if r.TrajectoryPath != nil {
		return *r.TrajectoryPath
	}
	return *r.TrajectoryID
}

// nameOfCall is a call's id and what was called.
func nameOfCall(s *atif.Step, id string) string {
	for _, c := range s.ToolCalls {
		if c.ID == id {
			return c.FunctionName + " (" + id + ")"
		}
	}
	return id
}

func (p *trajPrinter) content(mark string, c atif.Content) {
	if c.Parts == nil {
		p.text(mark, c.Text)
		return
	}
	for _, part := range c.Parts {
		switch part.Type {
		case atif.TextPart:
			p.text(mark, *part.Text)
		case atif.ImagePart:
			p.line(mark + imageText(part.Source))
		}
		mark = strings.Repeat(" ", len([]rune(mark)))
	}
}

func imageText(s *atif.ImageSource) string {
	return "[" + clean(s.MediaType) + " " + clean(s.Path) + "]"
}

func (p *trajPrinter) text(mark, text string) { p.block(mark, text, lipgloss.NewStyle()) }
func (p *trajPrinter) dim(mark, text string)  { p.block(mark, text, lipgloss.NewStyle().Faint(true)) }

// block prints the lines of a text, the first behind the mark and the others below
// it.
func (p *trajPrinter) block(mark, text string, style lipgloss.Style) {
	text = strings.TrimRight(text, "\r\n\t ")
	if text == "" {
		return
	}
	n, more := 0, 0
	for line := range strings.Lines(text) {
		if p.lines > 0 && n >= p.lines {
			more++
			continue
		}
		n++
		line = strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")
		if runes := []rune(line); len(runes) > maxShownLine {
			line = string(runes[:maxShownLine]) + "…"
		}
		p.line(mark + style.Render(clean(line)))
		if !strings.Contains(mark, "┆") {
			mark = strings.Repeat(" ", len([]rune(mark)))
		}
	}
	if more > 0 {
		p.line(mark + console.Dim("… "+count(more, "more line")))
	}
}
