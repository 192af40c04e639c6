package cubecli_test

import (
	"os"
	"path/filepath"
	"testing"

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
