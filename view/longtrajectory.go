package view

import (
	"context"
	"os"
	"slices"

	"github.com/proctor-run/proctor/jobdir/traces"
	"github.com/proctor-run/proctor/report"
)

const (
	// longTrajectory is from what size on a trajectory is read by parts, in bytes.
	longTrajectory = 4 << 20
	// mostIndexed is of how many it is kept where their steps are.
	mostIndexed = mostFollowed
)

// keptIndex says where the steps of a trajectory are, as long as its file is as it was.
type keptIndex struct {
	path  string
	file  os.FileInfo
	index *report.LongTrajectory
}

// readTrajectory reads the steps of a page, which begins at one of them or, where there are
// less, at the beginning of the last page.
func (s *Server) readTrajectory(ctx context.Context, file traces.File, from int) (t *report.Trajectory, first int, err error) {
	read, err := s.trajectoryReader(ctx, file)
	if err != nil {
		return nil, 0, err
	}
	t, err = read(report.Steps{First: from, Last: from + stepsPerPage - 1})
	if err == nil && len(t.Steps) == 0 && t.Totals.Steps > 0 {
		from = lastPage(t.Totals.Steps)
		t, err = read(report.Steps{First: from, Last: t.Totals.Steps})
	}
	return t, from, err
}

// trajectoryReader reads steps of a file: of a short one after all of it, else alone.
func (s *Server) trajectoryReader(ctx context.Context, file traces.File) (func(report.Steps) (*report.Trajectory, error), error) {
	info, err := os.Stat(file.Path())
	if err != nil || info.Size() < longTrajectory {
		return func(chosen report.Steps) (*report.Trajectory, error) { return report.ReadTrajectory(file, chosen) }, nil
	}
	index, err := s.indexed(ctx, file)
	if err != nil {
		return nil, err
	}
	return index.Read, nil
}

// indexed is where the steps of a trajectory are and what they name.
func (s *Server) indexed(ctx context.Context, file traces.File) (*report.LongTrajectory, error) {
	info, err := os.Stat(file.Path())
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	if known := s.kept.indexOf(file.Path(), info); known != nil {
		return known, nil
	}
	index, err := report.IndexTrajectory(ctx, file)
	if err != nil {
		return nil, err
	}
	s.kept.keepIndex(keptIndex{file.Path(), info, index})
	return index, nil
}

func (k *kept) indexOf(path string, now os.FileInfo) *report.LongTrajectory {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, x := range k.indexes {
		if x.path == path && os.SameFile(x.file, now) && x.file.Size() == now.Size() && x.file.ModTime().Equal(now.ModTime()) {
			return x.index
		}
	}
	return nil
}

func (k *kept) keepIndex(x keptIndex) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.indexes = slices.DeleteFunc(k.indexes, func(other keptIndex) bool { return other.path == x.path })
	k.indexes = append(k.indexes, x)
	if n := len(k.indexes) - mostIndexed; n > 0 {
		k.indexes = slices.Delete(k.indexes, 0, n)
	}
}
