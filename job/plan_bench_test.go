package job_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
)

// BenchmarkPlan expands a job of ten thousand trials.
func BenchmarkPlan(b *testing.B) {
	c := jobdir.NewConfig(time.Time{})
	c.NAttempts = 10
	tasks := make([]jobdir.Task, 1000)
	for i := range tasks {
		tasks[i] = localTask(fmt.Sprintf("tasks/task-%d", i))
	}
	random := seeded()
	for b.Loop() {
		if _, err := job.Plan(c, uuid.UUID{}, tasks, random); err != nil {
			b.Fatal(err)
		}
	}
}
