package cube_test

import (
	"testing"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/internal/democube"
)

// TestTasksAreAMapping: an id that is named twice is one task, at its first place,
// and one config for each seed.
func TestTasksAreAMapping(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	whole, err := reg.Select(&democube.ConfigA{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := whole.Tasks()
	if err != nil || len(all) < 2 {
		t.Fatalf("%d tasks, %v", len(all), err)
	}
	first, second := all[0].ID, all[1].ID

	cfg := &democube.ConfigA{}
	cfg.TaskIDs = []string{second, first, second, first}
	sel, err := reg.Select(cfg)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := sel.Tasks()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	equal(t, "tasks", ids, []string{second, first})
	equal(t, "configs", taskIDs(t, reg, cfg), []string{second, first})
	if n, err := sel.NumTasks(); err != nil || n != 2 {
		t.Errorf("%d tasks, %v; want 2", n, err)
	}

	suite := cube.NewComposite("suite", cfg)
	name := sel.Name() + "/"
	equal(t, "configs of a composite", taskIDs(t, reg, suite), []string{name + second, name + first})

	cfg.SeedGenerator = &democube.Seeds{List: []int64{1, 2}}
	equal(t, "configs of seeds", taskIDs(t, reg, cfg), []string{second, second, first, first})
}
