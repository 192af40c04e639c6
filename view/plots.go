package view

import (
	"strings"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/report"
)

// mostHistograms is how many a page has.
const mostHistograms = 12

// histogram is a reward's distribution as it is drawn.
type histogram struct {
	Name      string // empty where there is one alone
	Low, High string
	Bars      []bar
}

// bar is a part of a plot, its places and sizes of 100; Title is for who points at it.
type bar struct {
	X, Y, Width, Height float64
	Title               string
}

func histograms(d *report.Digest) []histogram {
	list := make([]histogram, 0, len(d.Histograms))
	for _, h := range d.Histograms[:min(mostHistograms, len(d.Histograms))] {
		list = append(list, histogramOf(&h))
	}
	if len(list) == 1 {
		list[0].Name = ""
	}
	return list
}

func histogramOf(h *report.Histogram) histogram {
	out := histogram{Name: label(h.Reward) + " of " + label(h.Group), Low: decimals(float64(h.Low)), High: decimals(float64(h.High))}
	most := 0
	for _, n := range h.Counts {
		most = max(most, n)
	}
	step := 100 / float64(len(h.Counts))
	for i, n := range h.Counts {
		from, to := h.Bounds(i)
		height := ratio(float64(n), float64(most))
		out.Bars = append(out.Bars, bar{
			X: float64(i)*step + 0.5, Y: 100 - height, Width: step - 1, Height: height,
			Title: decimals(from) + " to " + decimals(to) + ": " + count(n, "trial"),
		})
	}
	return out
}

// timeline is what a job did when, one phase upon the other.
type timeline struct {
	From, Took, Most string
	Lines            []timeLine
}

// timeLine is a phase: its style and name, and a bar per slot of time in which it was.
type timeLine struct {
	Kind, Name string
	Bars       []bar
}

// timelineOf is nil without a timeline.
func timelineOf(t *report.Timeline) *timeline {
	if t == nil {
		return nil
	}
	most := t.Most()
	slots := len(t.Phases[0].Trials)
	out := &timeline{From: moment(&t.Started), Took: seconds(t.Seconds * float64(slots)), Most: console.Tenths(most)}
	step := 100 / float64(slots)
	under := make([]float64, slots)
	for _, p := range t.Phases {
		line := timeLine{Kind: strings.ReplaceAll(string(p.Phase), " ", "-"), Name: string(p.Phase)}
		for i, n := range p.Trials {
			height := ratio(n, most)
			if height == 0 {
				continue
			}
			under[i] += height
			line.Bars = append(line.Bars, bar{
				X: float64(i) * step, Y: 100 - under[i], Width: step, Height: height,
				Title: "+" + seconds(float64(i)*t.Seconds) + ": " + console.Tenths(n) + " in " + line.Name,
			})
		}
		out.Lines = append(out.Lines, line)
	}
	return out
}
