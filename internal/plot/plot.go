// Package plot draws what is reported of jobs as pictures that need nothing beside them:
// for papers, slides and pages.
package plot

import (
	"fmt"
	"strconv"

	"github.com/go-analyze/charts"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/report"
)

// Format is the kind of a picture, which is also how the name of its file ends.
type Format string

// The formats.
const (
	SVG Format = charts.ChartOutputSVG
	PNG Format = charts.ChartOutputPNG
)

// Pictures have this size in pixels.
const width, height = 960, 480

// longest is how much of a name a title has room for.
const longest = 40

// Histogram draws how a reward is distributed.
func Histogram(h *report.Histogram, format Format) ([]byte, error) {
	counts := make([]float64, len(h.Counts))
	labels := make([]string, len(h.Counts))
	for i, n := range h.Counts {
		from, _ := h.Bounds(i)
		counts[i], labels[i] = float64(n), strconv.FormatFloat(from, 'g', 3, 64)
	}
	o := charts.NewBarChartOptionWithData([][]float64{counts})
	o.Theme = theme(accent)
	o.Title = title(name(h.Reward) + " of " + name(h.Group))
	o.CategoryAxis.Labels, o.CategoryAxis.LabelCount = labels, len(labels)/2
	o.CategoryAxis.Title = console.Count(h.Trials, "trial")
	o.BarMargin = charts.Ptr(0.0)
	o.ValueAxis = []charts.ValueAxisOption{{Min: charts.Ptr(0.0), Unit: 1, ValueFormatter: short}}
	return draw(format, func(p *charts.Painter) error { return p.BarChart(o) })
}

// Timeline draws how many trials were in which phase when, one phase above the other.
func Timeline(t *report.Timeline, format Format) ([]byte, error) {
	var values [][]float64
	var names []string
	var colours []charts.Color
	for _, p := range t.Phases {
		values, names, colours = append(values, p.Trials), append(names, string(p.Phase)), append(colours, ofPhase[p.Phase])
	}
	labels := make([]string, len(t.Phases[0].Trials))
	for i := range labels {
		labels[i] = "+" + console.Seconds(float64(i)*t.Seconds)
	}
	o := charts.NewLineChartOptionWithData(values)
	o.Theme = theme(colours...)
	o.Title = title("Trials at once, by phase")
	o.Legend = charts.LegendOption{SeriesNames: names, Offset: charts.OffsetRight}
	o.XAxis.Labels, o.XAxis.LabelCount = labels, 7
	o.XAxis.Title = "since " + t.Started.Format("2006-01-02 15:04:05") + " UTC"
	o.YAxis = []charts.YAxisOption{{Min: charts.Ptr(0.0), ValueFormatter: short}}
	o.StackSeries, o.Symbol = charts.Ptr(true), charts.Symbol{Shape: charts.SymbolNone}
	return draw(format, func(p *charts.Painter) error { return p.LineChart(o) })
}

func draw(format Format, chart func(*charts.Painter) error) ([]byte, error) {
	p := charts.NewPainter(charts.PainterOptions{OutputFormat: string(format), Width: width, Height: height})
	err := chart(p)
	var data []byte
	if err == nil {
		data, err = p.Bytes()
	}
	if err != nil {
		return nil, fmt.Errorf("drawing: %w", err)
	}
	return data, nil
}

func title(text string) charts.TitleOption {
	return charts.TitleOption{Text: text, FontStyle: charts.FontStyle{FontSize: 16}}
}

// name is what a file calls something, as a part of a line.
func name(text string) string {
	runes := []rune(console.Clean(text))
	if len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return string(runes)
}

func short(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }
