package view

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/report"
)

const (
	// sparkPoints is how many points the line of a job's progress has at most.
	sparkPoints = 40
	// mostSparks is how many jobs of the list have one: those that run are read each time.
	mostSparks = 10
)

// sparks draws how the jobs of the list that run have come along.
func (s *Server) sparks(ctx context.Context, rows []jobRow) {
	drawn := 0
	for i := range rows {
		row := &rows[i]
		if row.State != report.Running || drawn == mostSparks {
			continue
		}
		drawn++
		if j, err := s.readJob(ctx, row.path, false); err == nil {
			row.Spark = sparkOf(j.Records(), j.Planned)
		}
	}
}

// sparkOf is a line through how many of the planned trials had ended at which time, from
// the first one's beginning to the last end: points of an area of 100 by 20. It is empty
// where no two have ended.
func sparkOf(records []scan.FileRecord, planned int) string {
	first := int64(math.MaxInt64)
	var ends []int64
	for i := range records {
		r := &records[i]
		end := r.StartedAt
		for _, p := range r.Phases {
			end = max(end, p.Finished)
		}
		if r.StartedAt > 0 {
			first = min(first, r.StartedAt)
			ends = append(ends, end)
		}
	}
	slices.Sort(ends)
	if len(ends) < 2 || ends[len(ends)-1] <= first {
		return ""
	}
	planned = max(planned, len(ends))
	width := float64(ends[len(ends)-1] - first)
	var line strings.Builder
	line.WriteString("0,20")
	for i := range sparkPoints {
		share := float64(i+1) / sparkPoints
		until := first + int64(share*width)
		if i == sparkPoints-1 {
			until = ends[len(ends)-1]
		}
		n, _ := slices.BinarySearch(ends, until+1)
		fmt.Fprintf(&line, " %.1f,%.1f", 100*share, 20-20*float64(n)/float64(planned))
	}
	return line.String()
}
