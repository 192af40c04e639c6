package cubecli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/cubecli"
	"github.com/proctor-run/proctor/internal/exitcode"
)

// TestDataOfPython: what an installer in Python left in ~/.cube, or where
// CUBE_CACHE_DIR says, is found.
func TestDataOfPython(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{false, true} {
		downloads := 0
		p := newProgram(t, stored{downloads: &downloads}.cube())
		p.cache = nil
		root := p.path(".cube")
		if named {
			root = p.path("elsewhere")
			p.env["CUBE_CACHE_DIR"] = root
		}
		dir := filepath.Join(root, "stored", "tasks_execution_info")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"one", "two", "many"} {
			if err := os.WriteFile(filepath.Join(dir, id+".json"), []byte(`{"answer": 1}`), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		p.run("show").want(t, exitcode.OK, "installed data: of 3 of 3 tasks, in "+dir)
		p.run("show", "--json").want(t, exitcode.OK, `"with_data": 3`, dir)
		p.job("j").want(t, exitcode.OK, "Mean 1.000 over 3 tasks")
		if downloads != 0 {
			t.Errorf("%d tasks were installed again", downloads)
		}
	}
}

// TestInstall: what is said is what was done, also of parts of a composite, of
// data that lies elsewhere, and the second time.
func TestInstall(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	for _, c := range []struct {
		name string
		cube cubecli.Cube
		dir  string
		of   string
	}{
		{"simple", stored{}.cube(), "cache/stored", "of 3 of 3 tasks"},
		{"composite", stored{}.both(), "cache/stored", "of 3 of 6 tasks"},
		{"elsewhere", stored{elsewhere: elsewhere}.cube(), elsewhere, "of 3 of 3 tasks"},
	} {
		p := newProgram(t, c.cube)
		dir := c.dir
		if !filepath.IsAbs(dir) {
			dir = p.path(dir)
		}
		p.run("uninstall").want(t, exitcode.OK, "no data of its tasks is installed")
		p.run("install").want(t, exitcode.OK, ": installed; data "+c.of, dir)
		p.run("install").want(t, exitcode.OK, ": installed before; data "+c.of, dir)
		p.run("install", "--json").want(t, exitcode.OK, `"installable": true`, `"with_data_before": 3`, `"with_data": 3`)
		p.run("uninstall").want(t, exitcode.OK, "data of 3 tasks removed")
		if left, err := filepath.Glob(filepath.Join(dir, "tasks_execution_info", "*.json")); err != nil || len(left) > 0 {
			t.Errorf("%s: %q is left, %v", c.name, left, err)
		}
		p.run("uninstall", "--json").want(t, exitcode.OK, `"with_data_before": 0`)
	}
	newProgram(t, guess{}.cube()).run("install").want(t, exitcode.OK, "guess: nothing to install for 3 tasks")
}

// TestNoPlace: without a place for data, cubes that install none work.
func TestNoPlace(t *testing.T) {
	t.Parallel()
	none := func() (string, error) { return "", exitcode.Usagef("no place: set HOME") }
	p := newProgram(t, guess{}.cube())
	p.cache, p.env = none, map[string]string{}
	for _, command := range []string{"list", "show", "install", "uninstall"} {
		p.run(command).want(t, exitcode.OK)
	}
	p.job("j").want(t, exitcode.OK, "Mean 1.000")
	p.forget("j", "one")
	p.run("resume", p.path("jobs", "j")).want(t, exitcode.OK)
	s := newProgram(t, stored{}.cube())
	s.cache = none
	s.run("install").want(t, exitcode.Usage, "no place: set HOME")
	s.job("j").want(t, exitcode.Usage, "no place: set HOME")
}

func TestSubsets(t *testing.T) {
	t.Parallel()
	p := newProgram(t, guess{}.cube())
	p.run("show").want(t, exitcode.OK, "subsets: simple (2 tasks), tough (1 task)")
	p.run("show", "--json").want(t, exitcode.OK, `"name": "tough",`, `"num_tasks": 1`)
	p.run("show", "--subset", "simple").want(t, exitcode.OK, "2 tasks:")
	p.job("simple", "--subset", "simple").want(t, exitcode.OK, "Mean 1.000 over 2 tasks")
	p.job("both", "--subset", "simple", "-t", "t*").want(t, exitcode.OK, "over 1 task")
	p.run("test", "--subset", "tough").want(t, exitcode.OK, "looked at 1 of 1 task")
	p.run("install", "--subset", "tough").want(t, exitcode.OK, "nothing to install for 1 task")
	for _, command := range []string{"show", "test", "install", "uninstall", "run"} {
		p.run(command, "--subset", "simpel").want(t, exitcode.Usage, `guess has no subset "simpel"`, "did you mean simple?", "subsets are: simple, tough")
	}
	p.job("refused", "-x", "nine*", "-x", "many").want(t, exitcode.Usage, `no task of "guess" matches "nine*"`)
	p.job("less", "-x", "many").want(t, exitcode.OK, "over 2 tasks")
}
