package plot_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/internal/plot"
	"github.com/proctor-run/proctor/report"
)

// pictures are those of a job, by names.
func pictures(t *testing.T, h *report.Histogram, line *report.Timeline, format plot.Format) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for name, draw := range map[string]func() ([]byte, error){
		"histogram": func() ([]byte, error) { return plot.Histogram(h, format) },
		"timeline":  func() ([]byte, error) { return plot.Timeline(line, format) },
	} {
		data, err := draw()
		if err != nil {
			t.Fatalf("%s as %s: %v", name, format, err)
		}
		out[name] = data
	}
	return out
}

// elements reads an SVG whole: how often it has which element, and its texts.
func elements(t *testing.T, data []byte) (count map[string]int, texts []string) {
	t.Helper()
	count = map[string]int{}
	for d := xml.NewDecoder(bytes.NewReader(data)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count, texts
		}
		if err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		switch e := token.(type) {
		case xml.StartElement:
			count[e.Name.Local]++
		case xml.CharData:
			texts = append(texts, string(e))
		}
	}
}

// TestPictures: a job of Harbor's as pictures of both kinds.
func TestPictures(t *testing.T) {
	t.Parallel()
	j, err := report.ReadJob(t.Context(), jobtest.Fixture("mixed-oracle"), time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	h := j.Histograms()
	if len(h) != 1 {
		t.Fatalf("%d histograms", len(h))
	}
	svg := pictures(t, &h[0], j.Timeline(), plot.SVG)
	_, texts := elements(t, svg["histogram"])
	if text := strings.Join(texts, "|"); !strings.Contains(text, "reward of oracle__mixed") || !strings.Contains(text, "6 trials") {
		t.Errorf("the histogram says %q", text)
	}
	_, texts = elements(t, svg["timeline"])
	if text := strings.Join(texts, "|"); !strings.Contains(text, "verifier") || !strings.Contains(text, "UTC") {
		t.Errorf("the timeline says %q", text)
	}
	for name, data := range pictures(t, &h[0], j.Timeline(), plot.PNG) {
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if b := img.Bounds(); b.Dx() < 600 || b.Dy() < 300 {
			t.Errorf("%s has %v", name, b)
		}
	}
}

// TestHostileNames: a name from a job is text, and numbers at the ends of what there is
// are drawn.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	bad := "</text><script>alert(1)</script>\x1b[31m\x00\"'&" + strings.Repeat("W", 1<<16)
	line := &report.Timeline{Started: time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), Seconds: 1e12, Phases: []report.PhaseLine{
		{Phase: report.PhaseAgent, Trials: append(make([]float64, 59), 1e6)},
	}}
	for _, high := range []float64{math.MaxFloat64, math.SmallestNonzeroFloat64} {
		h := &report.Histogram{Group: bad, Reward: bad, Low: 0, High: report.Number(high), Trials: 3, Counts: []int{1 << 40, 1, 0, 1}}
		for name, data := range pictures(t, h, line, plot.SVG) {
			count, texts := elements(t, data)
			if count["script"] > 0 || len(data) > 1<<20 {
				t.Errorf("%s has %v in %d bytes", name, count, len(data))
			}
			if text := strings.Join(texts, "|"); strings.Contains(text, "+-") {
				t.Errorf("%s has times before its beginning: %.300s", name, text)
			}
		}
		pictures(t, h, line, plot.PNG)
	}
}
