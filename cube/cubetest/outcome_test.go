package cubetest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubetest"
	"github.com/proctor-run/proctor/cube/internal/democube"
)

func demoSuite(t *testing.T, agent cubetest.DebugAgent) cubetest.Suite {
	t.Helper()
	reg := cube.NewRegistry(cube.Options{CacheRoot: t.TempDir()})
	if err := democube.Register(reg, nil); err != nil {
		t.Fatal(err)
	}
	return cubetest.Suite{Registry: reg, Config: &democube.ConfigA{}, Agent: agent, Now: frozen}
}

func counter(cube.TaskConfig) cube.Agent { return always(cube.NewAction("count", "by", 3)) }

// TestOutcomeText is row 38 of the checklist of CUBE, section 16.
func TestOutcomeText(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		agent    cubetest.DebugAgent
		skip     bool
		json     string
		wantText string
		wantCode int
	}{
		"passed": {agent: counter, json: "report.json", wantText: `cube test  benchmark=bench-a  tasks=3  failures=0
  PASS  test_debug_tasks_exist
  PASS  test_debug_agent_exists
  PASS  test_full_episode
  PASS  test_reset_reproducibility
  PASS  test_tools_list
  PASS  test_close_idempotent
  PASS  test_benchmark_metadata
  JSON  report.json

PASSED
`},
		"failed": {
			agent: func(task cube.TaskConfig) cube.Agent {
				if task.TaskID() == "task-2" {
					return always(cube.Stop())
				}
				return counter(task)
			},
			skip: true,
			wantText: `cube test  benchmark=bench-a  tasks=3  failures=1
  PASS  test_debug_tasks_exist
  PASS  test_debug_agent_exists
  FAIL  test_full_episode
  SKIP  test_reset_reproducibility
  PASS  test_tools_list
  PASS  test_close_idempotent
  PASS  test_benchmark_metadata

FAILED — 1/3 tasks did not reach reward 1.0
`, wantCode: 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := cubetest.Debug(t.Context(), demoSuite(t, c.agent), c.skip)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			if err := o.WriteText(&text, c.json); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.wantText, text.String()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if o.ExitCode() != c.wantCode {
				t.Errorf("exit code %d, want %d", o.ExitCode(), c.wantCode)
			}
		})
	}
}

func TestReportFile(t *testing.T) {
	t.Parallel()
	o, err := cubetest.Debug(t.Context(), demoSuite(t, counter), false)
	if err != nil {
		t.Fatal(err)
	}
	text := string(o.ReportFile("1.2.3", time.Unix(0, 0)))
	for _, want := range []string{
		"{\n  \"cube_version\": \"1.2.3\",\n  \"benchmark\": \"bench-a\",\n  \"timestamp\": \"1970-01-01T00:00:00Z\",\n  \"hardware\": {\n    \"cpu_count\": ",
		"\"compliance\": {\n    \"passed\": [\n      \"test_debug_tasks_exist\",",
		"\"failed\": []",
		"\"step_latency_p50_s\": ", "\"episode_time_s\": 0.0", "\"step/tool_execute/n_actions\": 1.0",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestNoTasksIsAFailure(t *testing.T) {
	t.Parallel()
	s := demoSuite(t, counter)
	cfg := &democube.ConfigA{}
	cfg.SeedGenerator = &democube.Seeds{}
	s.Config = cfg
	o, err := cubetest.Debug(t.Context(), s, true)
	if err != nil {
		t.Fatal(err)
	}
	if o.ExitCode() != 1 {
		t.Error("no task ran and the exit code is 0")
	}
}

func TestSuiteWorkers(t *testing.T) {
	t.Parallel()
	s := demoSuite(t, counter)
	s.Workers = -1
	if _, err := s.Run(t.Context()); err == nil || err.Error() != "workers must be >= 0" {
		t.Errorf("got %v", err)
	}
	for _, workers := range []int{0, 1, 2} {
		s := demoSuite(t, counter)
		s.Workers = workers
		var started, done []string
		s.OnStart = func(id string) { started = append(started, id) }
		s.OnDone = func(r cubetest.Report) { done = append(done, r.TaskID) }
		if workers == 2 {
			s.OnStart = nil
		}
		reports, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(done) != 3 || len(reports) != 3 || reports[0].TaskID != "task-1" || reports[2].TaskID != "other-3" {
			t.Errorf("%d workers: done %v", workers, done)
		}
		if workers != 2 && len(started) != 3 {
			t.Errorf("%d workers: started %v", workers, started)
		}
	}
}

func TestUnmakeableTaskIsAReport(t *testing.T) {
	t.Parallel()
	s := demoSuite(t, counter)
	cfg := &democube.ConfigA{}
	cfg.ContainerBackend = &democube.Backend{} // launches nothing
	s.Config = cfg
	reports, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if reports[2].Err == nil || reports[2].Steps != 0 || reports[0].Err != nil {
		t.Errorf("got %+v", reports)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	got := string(cubetest.JSON("b", []cubetest.Report{{TaskID: "t"}}))
	if !strings.HasPrefix(got, "{\n  \"benchmark\": \"b\",\n  \"debug_episodes\": [\n    {\n      \"task_id\": \"t\",\n      \"done\": false,") {
		t.Errorf("got %s", got)
	}
}
