package plot

import (
	"github.com/go-analyze/charts"

	"github.com/proctor-run/proctor/report"
)

// The colours are those of the pages on light ground.
var (
	accent = charts.ColorFromHex("#0f766e")
	ink    = charts.ColorFromHex("#1d1e20")
	soft   = charts.ColorFromHex("#62646a")
	line   = charts.ColorFromHex("#e4e1da")
)

var ofPhase = map[report.PhaseKind]charts.Color{
	report.PhaseEnvironment: charts.ColorFromHex("#7b7d83"),
	report.PhaseAgentSetup:  charts.ColorFromHex("#a67c00"),
	report.PhaseAgent:       accent,
	report.PhaseVerifier:    charts.ColorFromHex("#2f6fb5"),
}

// theme has a colour per series.
func theme(series ...charts.Color) charts.ColorPalette {
	return charts.MakeTheme(charts.ThemeOption{
		AxisStrokeColor: soft, AxisSplitLineColor: line, BackgroundColor: charts.ColorWhite,
		TextColor: soft, TextColorTitle: ink, SeriesColors: series,
	})
}
