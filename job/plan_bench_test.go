package job_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/proctor-run/proctor/job"
)

// BenchmarkPlan expands a job of ten thousand trials.
func BenchmarkPlan(b *testing.B) {
	c := job.NewConfig(time.Time{})
	c.NAttempts = 10
	tasks := make([]job.Task, 1000)
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
