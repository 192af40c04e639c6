package view

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/proctor-run/proctor/jobdir/scan"
)

const (
	// mostBesides is how many other trials a file can be held beside.
	mostBesides = 20
	// aroundChange is how many equal lines are shown before and behind what differs.
	aroundChange = 3
)

// The styles of lines of a difference.
const (
	styleAdded   = "added"
	styleRemoved = "removed"
	styleHunk    = "hunk"
)

// beside offers the same file of other attempts at the trial's task.
func (p *filePage) beside(ctx context.Context, s *Server, at place, trial, name, chosen string) {
	j, err := s.readJob(ctx, at.path, false)
	if err != nil {
		return // the page of the job says why
	}
	var own *scan.FileRecord
	records := j.Records()
	for i := range records {
		if records[i].Dir == trial {
			own = &records[i]
		}
	}
	if own == nil {
		return
	}
	for i := range records {
		r := &records[i]
		if r.Dir == trial || r.TaskName != own.TaskName || r.Dataset() != own.Dataset() {
			continue
		}
		info, err := os.Lstat(filepath.Join(at.path, r.Dir, filepath.FromSlash(name)))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		p.Besides = append(p.Besides, choice{Text: label(r.Dir), Href: query(p.Href, "with", r.Dir), Chosen: r.Dir == chosen})
		if len(p.Besides) == mostBesides {
			return
		}
	}
}

// compare shows how a file differs from the same of another trial: of long ones, how their
// beginnings do.
func (p *filePage) compare(f io.ReaderAt, size int64, at place, with, name string) error {
	if !isName(with) {
		return errNoPage
	}
	dir := filepath.Join(at.path, with)
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return errNoPage
	}
	g, info, err := openFile(dir, name)
	if err != nil {
		return err
	}
	defer func() { _ = g.Close() }()
	other, err := beginning(g)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	own, err := beginning(f)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	p.With, p.WithHref = label(with), at.trialHref(with)
	p.Partly = size > sliceSize || info.Size() > sliceSize
	if p.Binary = isBinary(own) || isBinary(other); p.Binary {
		return nil
	}
	return p.difference(string(other), string(own))
}

func beginning(f io.ReaderAt) ([]byte, error) {
	return io.ReadAll(io.NewSectionReader(f, 0, sliceSize)) //nolint:wrapcheck // whoever calls names the file
}

// difference shows what of an old text is not in a new one, and the other way round.
func (p *filePage) difference(old, now string) error {
	old, now = plain(old), plain(now)
	d, err := udiff.ToUnifiedDiff("", "", old, udiff.Lines(old, now), aroundChange)
	if err != nil {
		return fmt.Errorf("comparing two files: %w", err)
	}
	for i, h := range d.Hunks {
		if i > 0 || h.ToLine > 1 {
			p.Lines = append(p.Lines, textLine{Text: "…", Style: styleHunk})
		}
		n := h.ToLine
		for _, l := range h.Lines {
			line := textLine{N: n, Text: shortLine(strings.TrimRight(l.Content, "\n"))}
			switch l.Kind {
			case udiff.Delete:
				line.N, line.Style, line.Text = 0, styleRemoved, "-"+line.Text
				p.Removed++
			case udiff.Insert:
				line.Style, line.Text = styleAdded, "+"+line.Text
				p.Added++
				n++
			default:
				line.Text = " " + line.Text
				n++
			}
			p.Lines = append(p.Lines, line)
		}
	}
	return nil
}

// isPatch reports whether a file is called as differences are.
func isPatch(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".diff" || ext == ".patch"
}

// patchStyle is how a line of a difference is shown.
func patchStyle(line string) string {
	switch {
	case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "diff "):
		return styleHunk
	case strings.HasPrefix(line, "+"):
		return styleAdded
	case strings.HasPrefix(line, "-"):
		return styleRemoved
	}
	return ""
}
