package cgroup

import "path/filepath"

// Shown is a directory of the host that a sandbox sees read-only at a path.
type Shown struct{ Source, Target string }

// View is what a sandbox sees of its own groups where programs look for them: with
// version 2 one directory, with version 1 one for each controller below Root, as in
// containers of engines.
func (g *Groups) View() []Shown {
	if g == nil {
		return nil
	}
	if g.Unified() {
		return []Shown{{g.unified.Name(), Root}}
	}
	var all []Shown
	for _, d := range g.dirs {
		all = append(all, Shown{d.dir, filepath.Join(Root, d.controller)})
	}
	return all
}
