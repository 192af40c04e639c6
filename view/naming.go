package view

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/proctor-run/proctor/jobdir/traces"
	"github.com/proctor-run/proctor/report"
)

// mostFollowed is in how many trajectories is looked for what names one.
const mostFollowed = 64

// besideFile is what a trajectory names by a path; not ok for what is not below the
// directory where all of them are.
func besideFile(dir, to string) (name string, ok bool) {
	name = path.Join(dir, to)
	return name, filepath.IsLocal(name)
}

// wayBack adds to a page what names the trajectory and its subagents.
func (s *Server) wayBack(ctx context.Context, p *trajectoryPage, src source, file traces.File, name string) error {
	if name != src.names[0] {
		by, err := s.namedBy(ctx, src, name)
		if err != nil {
			return err
		}
		p.By = by
	}
	if len(p.Subagents) > 0 {
		if x, err := s.indexed(ctx, file); err == nil {
			p.nameSubagents(src.at, name, x.Names())
		}
	}
	return nil
}

// namedBy says which step or file names a trajectory, where one does: the way back from
// what it leads to. Files that cannot be read name nothing. The error is the end of ctx.
func (s *Server) namedBy(ctx context.Context, src source, name string) (*namer, error) {
	files := slices.Clone(src.names)
	for i := 0; i < len(files) && i < mostFollowed; i++ {
		file, ok := trajectoryAt(src.dir, files[i])
		if !ok {
			continue
		}
		x, err := s.indexed(ctx, file)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			continue
		}
		for _, n := range x.Names() {
			to, ok := besideFile(path.Dir(files[i]), n.Path)
			switch {
			case n.Path == "" || !ok:
			case to == name && files[i] != name:
				return namerOf(src.at, files[i], x.Len(), n), nil
			case len(files) < mostFollowed && !slices.Contains(files, to):
				files = append(files, to)
			}
		}
	}
	return nil, nil
}

// namer is where a trajectory is named.
type namer struct {
	How string
	link
}

func namerOf(at, file string, steps int, n report.Naming) *namer {
	if n.Step == 0 {
		return &namer{"It continues", link{label(file), stepHref(at, file, steps)}}
	}
	href := stepHref(at, file, n.Step)
	if n.Subagent > 0 {
		href = query(at+"/trajectory", "file", file) + "#" + subagentAnchor(n.Subagent)
		if n.Step <= stepsPerPage {
			href += "-" + stepAnchor(n.Step)
		}
	}
	return &namer{"A subagent of", link{"step " + strconv.Itoa(n.Step) + " of " + label(file), href}}
}

// stepHref is the address of a step, on that of the pages which follow one another from
// the beginning.
func stepHref(at, file string, step int) string {
	from := ""
	if step > stepsPerPage {
		from = strconv.Itoa((step-1)/stepsPerPage*stepsPerPage + 1)
	}
	return query(at+"/trajectory", "file", file, "from", from) + "#" + stepAnchor(step)
}

func stepAnchor(step int) string { return "step-" + strconv.Itoa(step) }

func subagentAnchor(i int) string { return "subagent-" + strconv.Itoa(i) }

// nameSubagents says which steps name the subagents within a document.
func (p *trajectoryPage) nameSubagents(at, file string, names []report.Naming) {
	by := map[string]*link{}
	for _, n := range names {
		if n.Subagent == 0 && n.ID != "" && by[n.ID] == nil {
			by[n.ID] = &link{"step " + strconv.Itoa(n.Step), stepHref(at, file, n.Step)}
		}
	}
	for i := range p.Subagents {
		p.Subagents[i].By = by[p.Subagents[i].id]
	}
}
