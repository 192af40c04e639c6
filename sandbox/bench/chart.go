package bench

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
)

// Measures of the chart, in pixels.
const (
	chartWidth = 860
	labelWidth = 150
	barsWidth  = 520
	barHeight  = 14
	lineHeight = 18
	groupSpace = 30
)

// colours of the subjects, which differ in lightness too.
var colours = []string{"#4d4d4d", "#1f77b4", "#d95f02", "#1b9e77", "#7570b3", "#e7298a", "#a6761d", "#66a61e"}

// WriteSVG writes the report as a chart: for each operation a bar for each
// subject, on a logarithmic scale of its own, with the median and the ratio.
func (r *Report) WriteSVG(w io.Writer) error {
	var b bytes.Buffer
	y := groupSpace
	for _, res := range r.Results {
		y = res.draw(&b, r.colour, y)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		chartWidth, y, chartWidth, y)
	fmt.Fprintf(&out, `<title>%s</title>`+"\n", escaped(fmt.Sprintf("proctor bench sandbox, %d rounds, %d processors", r.Runs, r.Machine.Processors)))
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="white"/>`+"\n", chartWidth, y)
	out.Write(b.Bytes())
	out.WriteString("</svg>\n")
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("writing the chart: %w", err)
	}
	return nil
}

func (r *Report) colour(subject string) string {
	for i, s := range r.Subjects {
		if s.Name == subject {
			return colours[i%len(colours)]
		}
	}
	return colours[0]
}

// draw writes one operation from the height y on, and returns where the next
// begins. Operations without samples are skipped.
func (res row) draw(b *bytes.Buffer, colour func(string) string, y int) int {
	low, high := math.Inf(1), 0.0
	for _, m := range res.Subjects {
		if m.P50 > 0 {
			low, high = min(low, m.P50), max(high, m.P50)
		}
	}
	if high == 0 {
		return y
	}
	better := "more is better"
	if res.Unit == unitSeconds {
		better = "less is better"
	}
	fmt.Fprintf(b, `<text x="10" y="%d" font-weight="bold">%s</text>`+"\n", y, escaped(res.Name+": "+res.What+" ("+better+")"))
	y += 6
	for _, m := range res.Subjects {
		if m.P50 <= 0 {
			continue
		}
		text := quantity(m.P50, res.Unit)
		if m.Ratio > 0 {
			text += "  " + times(m.Ratio)
		}
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, labelWidth-8, y+barHeight-3, escaped(m.Subject))
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, labelWidth, y, length(m.P50, low, high), barHeight, colour(m.Subject))
		fmt.Fprintf(b, `<text x="%.1f" y="%d">%s</text>`+"\n", labelWidth+length(m.P50, low, high)+6, y+barHeight-3, escaped(text))
		y += lineHeight
	}
	return y + groupSpace
}

// length of a bar: the smallest has a tenth of the width.
func length(v, low, high float64) float64 {
	if high <= low {
		return barsWidth
	}
	return barsWidth * (0.1 + 0.9*math.Log(v/low)/math.Log(high/low))
}

func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer takes everything
	return b.String()
}
