package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/score"
)

// maxUnfinished is up to how many directories without result are named.
const maxUnfinished = 10

func printUnfinished(w io.Writer, r *score.Rescored) {
	n := len(r.Unfinished)
	if n == 0 {
		return
	}
	names := strings.Join(r.Unfinished[:min(n, maxUnfinished)], ", ")
	if n > maxUnfinished {
		names += ", …"
	}
	noun := "directories"
	if n == 1 {
		noun = "directory"
	}
	_, _ = fmt.Fprintf(w, "%d %s without a result, not counted: %s\n", n, noun, clean(names))
}

func printDifferences(w io.Writer, r *score.Rescored, differences []score.Difference) {
	for _, d := range differences {
		_, _ = fmt.Fprintln(w, clean(d.String()))
	}
	if len(differences) == 0 {
		_, _ = fmt.Fprintf(w, "equal: the stored result is what its %s\n", console.CountGive(len(r.Records), "trial"))
		return
	}
	_, _ = fmt.Fprintf(w, "%s from what its %s\n", differText(len(differences)), console.CountGive(len(r.Records), "trial"))
}

func differText(n int) string {
	if n == 1 {
		return "1 field of the stored result differs"
	}
	return fmt.Sprintf("%d fields of the stored result differ", n)
}

// encodeJSON writes one JSON object on a line.
func encodeJSON(w io.Writer, v any) error { return report.WriteJSON(w, v) }
