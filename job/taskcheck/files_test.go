package taskcheck

import (
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/jobtest"
)

func TestJudgeFiles(t *testing.T) {
	t.Parallel()
	fail := func(file string) harbor.Problem { return harbor.Problem{Severity: harbor.SeverityError, File: file} }
	warn := func(file string) harbor.Problem {
		return harbor.Problem{Severity: harbor.SeverityWarning, File: file}
	}
	for _, c := range []struct {
		problems []harbor.Problem
		status   Status
		message  string
	}{
		{nil, Pass, "nothing wrong"},
		{[]harbor.Problem{warn("a")}, Warn, "warning: a: "},
		{[]harbor.Problem{warn("a"), warn("b")}, Warn, "warning: a:  (and 1 more)"},
		{[]harbor.Problem{warn("a"), fail("b"), fail("c")}, Fail, "error: b:  (and 2 more)"},
		{[]harbor.Problem{fail("a"), warn("b")}, Fail, "error: a:  (and 1 more)"},
	} {
		got := judgeFiles("dir", c.problems)
		if got.Name != CheckFiles || got.Status != c.status || got.Message != c.message {
			t.Errorf("%v: judged %+v, want %s: %s", c.problems, got, c.status, c.message)
		}
		if (got.Fix == "") != (c.status == Pass) {
			t.Errorf("%v: the fix is %q", c.problems, got.Fix)
		}
	}
}

func TestExamine(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "task")
	jobtest.WriteTask(t, dir, "do it")
	jobtest.Write(t, filepath.Join(dir, "task.toml"), []byte("[metadata]\noracle_reward = 0.5\n"))
	jobtest.Write(t, filepath.Join(dir, "solution", "solve.sh"), []byte("true\n"))
	s := Examine(dir)
	if !s.Runs || s.Goal != 0.5 || s.Dir != dir || s.Report.Worst() != Pass || len(s.Report.Checks) != 1 {
		t.Errorf("a valid task: %+v, %+v", s, s.Report)
	}
	jobtest.Write(t, filepath.Join(dir, "environment", harbor.ComposeFile), []byte("services: {}\n"))
	if s := Examine(dir); !s.Compose {
		t.Error("the compose file is not seen")
	}
	jobtest.Write(t, filepath.Join(dir, "task.toml"), []byte("[agent]\ntimeout_sec = 'x'\n"))
	if s := Examine(dir); s.Runs || s.Report.Passed || len(s.Report.Checks) != 1 {
		t.Errorf("an invalid task: %+v", s.Report)
	}
}
