package taskcheck

import (
	"fmt"

	harborcube "github.com/proctor-run/proctor/cube/cubes/harbor"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
)

// Examine looks at the files of a task before anything is run. Its report begins
// with [CheckFiles]; a task that does not fail it can be run.
func Examine(dir string) *Subject {
	s := &Subject{Dir: dir, Report: NewReport(dir)}
	files := judgeFiles(dir, harbor.Validate(dir))
	s.Report.Add(files)
	if files.Status == Fail {
		return s
	}
	meta, err := harborcube.NewMetadata(dir)
	var task *harbor.Task
	if err == nil {
		task, err = harbor.Load(dir, harbor.LoadOptions{})
	}
	if err != nil { // it was valid a moment ago
		s.Report.Add(Check{Name: CheckFiles, Status: Fail, Message: exception.PlainText(err)})
		return s
	}
	s.Goal, s.Config, s.Compose, s.Runs = meta.OracleReward, task.Config, task.HasCompose(), true
	return s
}

// judgeFiles judges the files of the task in dir by their problems: an error fails,
// a warning warns. The message is that of the first error, or else of the first
// warning.
func judgeFiles(dir string, problems []harbor.Problem) Check {
	c := Check{Name: CheckFiles, Status: Pass, Message: "nothing wrong"}
	for i, p := range problems {
		if i == 0 || p.Severity == harbor.SeverityError && c.Status != Fail {
			c.Message = p.String()
		}
		if c.Status != Fail {
			c.Status = Warn
		}
		if p.Severity == harbor.SeverityError {
			c.Status = Fail
		}
	}
	if n := len(problems); n > 1 {
		c.Message += fmt.Sprintf(" (and %d more)", n-1)
	}
	if c.Status != Pass {
		c.Fix = "'proctor task validate " + dir + "' names everything"
	}
	return c
}
