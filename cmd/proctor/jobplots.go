package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/plot"
	"github.com/proctor-run/proctor/report"
)

// maxHistograms is how many are drawn for people in a terminal.
const maxHistograms = 4

// printPlots draws what no table shows: how rewards are distributed, and what the job did
// when.
func printPlots(w io.Writer, d *report.Digest) {
	for _, h := range d.Histograms[:min(maxHistograms, len(d.Histograms))] {
		printHistogram(w, &h)
	}
	if more := len(d.Histograms) - maxHistograms; more > 0 {
		_, _ = fmt.Fprintf(w, "\n%s: --plots draws all\n", count(more, "more distribution"))
	}
	if d.Timeline != nil {
		printWhen(w, d.Timeline)
	}
}

func printHistogram(w io.Writer, h *report.Histogram) {
	const rows = 5
	most := 0
	values := make([]float64, len(h.Counts))
	for i, n := range h.Counts {
		values[i] = float64(n)
		most = max(most, n)
	}
	_, _ = fmt.Fprintf(w, "\nDistribution of %s of %s, %s:\n", clean(h.Reward), clean(h.Group), count(h.Trials, "trial"))
	edge := len(strconv.Itoa(most))
	for i, row := range columns(values, float64(most), rows) {
		label := ""
		switch i {
		case 0:
			label = strconv.Itoa(most)
		case rows - 1:
			label = "0"
		}
		_, _ = fmt.Fprintf(w, "  %*s %s\n", edge, label, strings.TrimRight(row, " "))
	}
	low, high := console.Decimals(float64(h.Low)), console.Decimals(float64(h.High))
	_, _ = fmt.Fprintf(w, "  %*s %s%*s\n", edge, "", low, max(2*len(values)-len(low), len(high)+1), high)
}

func printWhen(w io.Writer, t *report.Timeline) {
	most := t.Most()
	slots := len(t.Phases[0].Trials)
	_, _ = fmt.Fprintf(w, "\nTrials at once by phase, from %s UTC, %s per column, up to %s together:\n",
		t.Started.Format("2006-01-02 15:04:05"), seconds(t.Seconds), console.Tenths(most))
	for _, p := range t.Phases {
		row := columns(p.Trials, most, 1)[0]
		_, _ = fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("  %-12s%s", p.Phase, row), " "))
	}
	end := "+" + seconds(float64(slots)*t.Seconds)
	_, _ = fmt.Fprintf(w, "  %-12s+0s%*s\n", "", slots-len("+0s"), end)
}

// columns draws values as columns of rows lines, the highest line first. A value that is
// not 0 is always seen. Values of one line are a character wide, of more two.
func columns(values []float64, most float64, rows int) []string {
	const eighths = " ▁▂▃▄▅▆▇█"
	parts := []rune(eighths)
	lines := make([]string, rows)
	for _, x := range values {
		full := 0
		if most > 0 && x > 0 {
			full = min(max(int(x/most*float64(8*rows)+0.5), 1), 8*rows)
		}
		for i := range rows {
			part := string(parts[min(max(full-8*(rows-1-i), 0), 8)])
			if rows > 1 {
				part += part
			}
			lines[i] += part
		}
	}
	return lines
}

// writePlots draws the same into files of a directory, each as SVG and as PNG, and returns
// how many plots there are.
func writePlots(dir string, d *report.Digest) (int, error) {
	type picture struct {
		name string
		draw func(plot.Format) ([]byte, error)
	}
	var all []picture
	for i, h := range d.Histograms {
		name := "rewards"
		if len(d.Histograms) > 1 {
			name += "-" + strconv.Itoa(i+1)
		}
		all = append(all, picture{name, func(f plot.Format) ([]byte, error) { return plot.Histogram(&h, f) }})
	}
	if d.Timeline != nil {
		all = append(all, picture{"timeline", func(f plot.Format) ([]byte, error) { return plot.Timeline(d.Timeline, f) }})
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, usageErrorf("--plots: %w", err)
	}
	for _, p := range all {
		for _, format := range []plot.Format{plot.SVG, plot.PNG} {
			data, err := p.draw(format)
			if err == nil {
				err = atomicfile.WriteUnsynced(filepath.Join(dir, p.name+"."+string(format)), data, 0o644)
			}
			if err != nil {
				return 0, err
			}
		}
	}
	return len(all), nil
}
