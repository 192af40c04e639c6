package enginetest

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// Made is what a test made with an engine.
type Made interface {
	Destroy(ctx context.Context) error
}

// EachCallFails calls create with one engine after another: first with one that
// answers everything, then with engines that each fail one call of those, by an answer
// and by a cut connection. After an error of create, and else after Destroy, nothing is
// left on the engine.
func EachCallFails(t *testing.T, create func(e *Engine, host string) (Made, error)) {
	t.Helper()
	for _, cut := range []bool{false, true} {
		total := 0
		for failAt := 0; failAt <= total; failAt++ {
			e, host := New(t)
			e.FailAt, e.Vanish = failAt, cut
			made, err := create(e, host)
			if failAt == 0 {
				if err != nil {
					t.Fatal(err)
				}
				total = e.Calls
			}
			if err == nil {
				// What only looks is asked once more when the connection is cut.
				if failAt > 0 && (!cut || !strings.HasPrefix(e.Failed, http.MethodGet)) {
					t.Errorf("call %d, %s: no error", failAt, e.Failed)
				}
				if err := made.Destroy(t.Context()); err != nil {
					t.Errorf("call %d, %s: %v", failAt, e.Failed, err)
				}
			}
			if left := e.Left(); len(left) > 0 {
				t.Errorf("call %d, %s: left are %q after %v", failAt, e.Failed, left, err)
			}
		}
		t.Logf("%d calls failed in turn, connection cut: %v", total, cut)
	}
}
