package console

import (
	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
)

// Tables and titles are styled; lipgloss.Fprintln leaves the styles out where the
// writer is no terminal.

// Bold is how titles are shown.
func Bold(s string) string { return lipgloss.NewStyle().Bold(true).Render(s) }

// Dim is how what matters less is shown.
func Dim(s string) string { return lipgloss.NewStyle().Faint(true).Render(s) }

// NewTable has Harbor's frame: heavy around the header, light below.
func NewTable(header ...string) *table.Table {
	border := lipgloss.NormalBorder()
	border.Top, border.TopLeft, border.TopRight, border.MiddleTop = "━", "┏", "┓", "┳"
	border.MiddleLeft, border.MiddleRight, border.Middle = "┡", "┩", "╇"
	return table.New().Border(border).Headers(header...).StyleFunc(func(row, _ int) lipgloss.Style {
		style := lipgloss.NewStyle().Padding(0, 1)
		if row == table.HeaderRow {
			style = style.Bold(true)
		}
		return style
	})
}
