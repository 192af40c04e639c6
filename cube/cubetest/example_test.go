package cubetest_test

import (
	"context"
	"fmt"
	"os"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes/arithmetic"
	"github.com/proctor-run/proctor/cube/cubetest"
)

// The conformance suite without a testing.T. In a test of the cube's own
// package, cubetest.Run(t, subject) does the same.
func ExampleCheck() {
	cache, err := os.MkdirTemp("", "cube")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(cache) }()
	results, err := cubetest.Check(context.Background(), cubetest.Subject{
		Register: arithmetic.Register,
		Config:   &arithmetic.Config{},
		Agent:    arithmetic.Agent,
		Options:  cube.Options{CacheRoot: cache},
	})
	if err != nil {
		panic(err)
	}
	for _, r := range results {
		fmt.Println(r.Status, r.Check)
	}
	// Output:
	// PASS registered
	// PASS task-configs
	// PASS construction
	// PASS reset
	// PASS reset-reproducible
	// PASS action-set
	// PASS unknown-action
	// PASS stop
	// PASS step-output
	// PASS evaluate-pure
	// PASS debug-episode
	// PASS close
	// PASS privileged-info
	// PASS parallel
	// PASS install
}
