package harbor_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/harbor"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "tasks")
	dir, err := harbor.Create(parent, "my-org/count", "Counting")
	if err != nil || dir != filepath.Join(parent, "count") {
		t.Fatal(dir, err)
	}
	if problems := harbor.Validate(dir); len(problems) > 0 {
		t.Errorf("the new task has the problems %v", problems)
	}
	task, err := harbor.Load(dir, harbor.LoadOptions{})
	if err != nil || task.Name != "my-org/count" || task.Config.Task.Description != "Counting" {
		t.Errorf("%+v, %v", task, err)
	}
	for _, c := range []struct {
		name, description string
		want              error
	}{
		{"count", "", fs.ErrExist},
		{"../x", "", harbor.ErrName},
		{".x", "", harbor.ErrName},
		{"a/b/c", "", harbor.ErrName},
		{"", "", harbor.ErrName},
		{"plain", "of no package", harbor.ErrNoPackage},
	} {
		if _, err := harbor.Create(parent, c.name, c.description); !errors.Is(err, c.want) {
			t.Errorf("%q: %v, want %v", c.name, err, c.want)
		}
	}
	if dir, err = harbor.Create(parent, "plain", ""); err != nil || len(harbor.Validate(dir)) > 0 {
		t.Errorf("%s, %v", dir, err)
	}
}
