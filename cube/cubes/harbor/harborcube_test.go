package harborcube_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/cube"
	harborcube "github.com/proctor-run/proctor/cube/cubes/harbor"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

// cubeDir writes a small task.
func cubeDir(t *testing.T, extra string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a-task")
	for name, content := range map[string]string{
		"task.toml":              "schema_version = \"1.3\"\n" + extra,
		"instruction.md":         "Do it.\n",
		"environment/Dockerfile": "FROM debian\n",
		"tests/test.sh":          "#!/bin/bash\n",
		"solution/solve.sh":      "#!/bin/bash\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCubeEpisode(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, file, content string
		reward              float64
		source, failure     string
	}{
		{"text", "reward.txt", "0.5\n", 0.5, "reward.txt", ""},
		{"several keys", "reward.json", `{"a": 1, "b": 0}`, 0.5, "reward.json", ""},
		{"key reward", "reward.json", `{"a": 1, "reward": 0.25}`, 0.25, "reward.json", ""},
		{"null", "reward.json", `null`, 0, "reward.json", ""},
		{"no file", "other.txt", "", 0, "", "RewardFileNotFoundError"},
		{"no number", "reward.txt", "many", 0, "", "VerifierOutputParseError"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			backend := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{
				fake.On("/tests/test.sh", fake.Write("/logs/verifier/"+c.file, c.content)),
			}})
			defer fake.Verify(t, backend)
			reg := cube.NewRegistry(cube.Options{Sandbox: backend})
			if _, err := harborcube.Register(reg, harborcube.Options{}); err != nil {
				t.Fatal(err)
			}
			cfg, err := harborcube.NewTaskConfig(cubeDir(t, ""))
			if err != nil {
				t.Fatal(err)
			}
			data, err := cube.Marshal(cfg)
			if err != nil {
				t.Fatal(err)
			}
			worker, err := cube.Load[cube.TaskConfig](reg, data)
			if err != nil {
				t.Fatal(err)
			}
			task, err := reg.MakeTask(t.Context(), worker, cube.RuntimeContext{}, cube.NewLocalContainerBackend(backend))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = task.Close(t.Context()) }()
			obs, _, err := task.Reset(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if text, _ := obs.Markdown(); !strings.Contains(text, "Do it.") {
				t.Errorf("first observation %q", text)
			}
			out, err := task.Step(t.Context(), cube.NewAction("bash", "command", "true"), cube.Stop())
			if err != nil {
				t.Fatal(err)
			}
			if !out.Done || out.Reward != c.reward {
				t.Errorf("done %v, reward %v, want %v", out.Done, out.Reward, c.reward)
			}
			info := string(value.AppendPydantic(nil, out.Info, 0))
			for _, want := range []string{c.source, c.failure} {
				if want != "" && !strings.Contains(info, `"`+want+`"`) {
					t.Errorf("info lacks %s: %s", want, info)
				}
			}
			if _, _, err := task.Reset(t.Context()); err != nil || backend.Count(fake.OpCreate) != 1 || backend.Count("reset") != 1 {
				t.Errorf("second reset: %v; %d sandboxes were made, %d resets; want one that is reset", err, backend.Count(fake.OpCreate), backend.Count("reset"))
			}
		})
	}
}

func TestCubeRefusals(t *testing.T) {
	t.Parallel()
	cfg, err := harborcube.NewTaskConfig(cubeDir(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cfg.Make(t.Context(), cube.RuntimeContext{}, nil); err == nil || !strings.Contains(err.Error(), "container backend") {
		t.Errorf("without a backend: %v", err)
	}
}

func TestScalarReward(t *testing.T) {
	t.Parallel()
	r, err := reward.ParseJSON([]byte(`{"a": 1, "b": 2, "c": 0.5}`), "reward.json")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := harborcube.ScalarReward(r); err != nil || got != 3.5/3 {
		t.Errorf("mean %v, %v", got, err)
	}
	if got, err := harborcube.ScalarReward(nil); err != nil || got != 0 {
		t.Errorf("none %v, %v", got, err)
	}
}
