//go:build unix

package terminalbench_test

import (
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/harbor/terminalbench"
	"github.com/proctor-run/proctor/internal/planted"
)

// TestPlanted replaces each file of a task by what is none: mapping it ends, with an
// error where the file is needed or too large.
func TestPlanted(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"task.yaml": "instruction: Do it.\n", "Dockerfile": "FROM scratch\n", "solution.sh": "true\n", "run-tests.sh": "true\n",
		"docker-compose.yaml": "services:\n  client:\n    build:\n      dockerfile: Dockerfile\n    image: i\n    container_name: c\n" +
			"    command: [\"sh\", \"-c\", \"sleep infinity\"]\n",
		"tests/test_outputs.py": "", "data": "x",
	}
	plain := filepath.Join(t.TempDir(), "t")
	planted.Files(t, plain, files)
	if res, err := terminalbench.Map(t.Context(), plain, t.TempDir(), terminalbench.Options{}); err != nil || len(res.Failed) > 0 {
		t.Fatalf("the task as it is: %v, %v", res, err)
	}
	optional := map[string]bool{"tests/test_outputs.py": true, "data": true} // no file is no part of them
	for file := range files {
		for _, kind := range planted.Kinds() {
			t.Run(file+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "t")
				planted.Files(t, dir, files)
				kind.Put(t, filepath.Join(dir, filepath.FromSlash(file)))
				res, err := terminalbench.Map(t.Context(), dir, t.TempDir(), terminalbench.Options{})
				if err != nil {
					t.Fatal(err)
				}
				outside := kind == planted.Endless // links that lead out are refused
				if want := !optional[file] || kind == planted.Sparse || outside; (len(res.Failed) == 1) != want {
					t.Errorf("failed: %v; want a failure: %v", res.Failed, want)
				}
			})
		}
	}
}
