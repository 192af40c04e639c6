package sandboxtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/proctor-run/proctor/sandbox"
)

// Cycles makes sandboxes, runs a command in each and destroys them, four at a time. It
// returns their ids, of which nothing may be left.
func Cycles(t *testing.T, b sandbox.Backend, spec sandbox.Spec, cycles int) (ids []string) {
	t.Helper()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		todo = make(chan int)
	)
	for range 4 {
		wg.Go(func() {
			for n := range todo {
				own := spec
				own.Name = fmt.Sprintf("cycle-%d", n)
				id, err := cycle(t.Context(), b, own)
				if err != nil {
					t.Errorf("cycle %d: %v", n, err)
				}
				mu.Lock()
				ids = append(ids, id)
				mu.Unlock()
			}
		})
	}
	for n := range cycles {
		todo <- n
	}
	close(todo)
	wg.Wait()
	return ids
}

func cycle(ctx context.Context, b sandbox.Backend, spec sandbox.Spec) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	sb, err := b.Create(ctx, spec)
	if err != nil {
		return "", err //nolint:wrapcheck // the backend says what it was
	}
	st, err := sb.Exec(ctx, sandbox.Command{Argv: []string{"true"}})
	if err == nil && st.Code != 0 {
		err = fmt.Errorf("a command ended with %+v", st)
	}
	if gone := sb.Destroy(ctx); err == nil {
		err = gone
	}
	return sb.ID(), err
}
