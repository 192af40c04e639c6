package junit_test

import (
	"context"
	"fmt"

	"github.com/proctor-run/proctor/job/junit"
)

// The trials of a job that have not passed, and why.
func ExampleRead() {
	r, err := junit.Read(context.Background(), "../../jobdir/testdata/jobs/multi-oracle", junit.Options{PassAt: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range r.Suites {
		for _, c := range s.Cases {
			if c.State != junit.Passed {
				fmt.Println(c.Name+":", c.Message)
			}
		}
	}
	// Output:
	// one-score: correctness is 0.3, below 1.0
	// two-scores: speed is 0.7, below 1.0
}
