package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteTable writes the report for people: a line for each operation and subject.
func (r *Report) WriteTable(w io.Writer) error {
	for _, s := range r.Subjects {
		if _, err := fmt.Fprintf(w, "%s: %s\n", s.Name, s.RestsOn); err != nil {
			return fmt.Errorf("writing the table: %w", err)
		}
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(tw, "\noperation\tsubject\tp50\tp95\tn\tratio\t\n") // Flush has the error
	for _, res := range r.Results {
		name := res.Name
		for _, m := range res.Subjects {
			if m.N == 0 {
				_, _ = fmt.Fprintf(tw, "%s\t%s\t-\t\t\t\t%s\n", name, m.Subject, failure(m))
			} else {
				_, _ = fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\t%s\t\n", name, m.Subject,
					quantity(m.P50, res.Unit), quantity(m.P95, res.Unit), m.N, times(m.Ratio))
			}
			name = ""
		}
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

// failure is what a table says where something went wrong, and nothing where a
// backend just does not have the ability.
func failure(m measure) string {
	if m.Unable {
		return ""
	}
	return m.Note
}

func times(ratio float64) string {
	switch {
	case ratio == 0:
		return ""
	case ratio < 10:
		return fmt.Sprintf("%.2f×", ratio)
	}
	return fmt.Sprintf("%.0f×", ratio)
}

// quantity is a number with its unit, with about three digits.
func quantity(v float64, unit string) string {
	if unit != unitSeconds {
		return digits(v) + " " + unit
	}
	switch {
	case v >= 1:
		return digits(v) + " s"
	case v >= 1e-3:
		return digits(v*1e3) + " ms"
	}
	return digits(v*1e6) + " µs"
}

func digits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
