package docker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/proctor-run/proctor/sandbox"
)

func BenchmarkLife(b *testing.B) {
	be := newBackend(b)
	ctx := b.Context()
	for b.Loop() {
		sb, err := be.Create(ctx, sandbox.Spec{Name: "bench", Image: sandbox.Image{Ref: testImage}, Labels: labels(b)})
		if err != nil {
			b.Fatal(err)
		}
		if st, err := sb.Exec(ctx, sandbox.Command{Shell: "true"}); err != nil || st.Code != 0 {
			b.Fatal(st, err)
		}
		if err := sb.Destroy(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCalls(b *testing.B) {
	be := newBackend(b)
	sb, err := be.Create(b.Context(), sandbox.Spec{Name: "bench", Image: sandbox.Image{Ref: testImage}, Labels: labels(b)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = sb.Destroy(context.Background()) })
	b.Run("exec", func(b *testing.B) {
		for b.Loop() {
			if st, err := sb.Exec(b.Context(), sandbox.Command{Shell: "true"}); err != nil || st.Code != 0 {
				b.Fatal(st, err)
			}
		}
	})
	b.Run("mark", func(b *testing.B) {
		for b.Loop() {
			if _, err := sb.Mark(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("killtree", func(b *testing.B) {
		m, err := sb.Mark(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := sb.KillTree(b.Context(), m, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("upload", func(b *testing.B) {
		for b.Loop() {
			if err := sandbox.UploadBytes(b.Context(), sb, []byte("x"), "/tests/test.sh", 0o755); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkCommand runs a command that does nothing by the supervisor and by the
// engine's exec, in turns, and says how many times faster the first is.
func BenchmarkCommand(b *testing.B) {
	be := newBackend(b)
	took := [2]time.Duration{}
	var boxes [2]sandbox.Sandbox
	for i, backend := range []sandbox.Backend{be, be.Baseline()} {
		sb, err := backend.Create(b.Context(), sandbox.Spec{Name: "bench", Image: sandbox.Image{Ref: testImage}, Labels: labels(b)})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = sb.Destroy(context.Background()) })
		boxes[i] = sb
	}
	turns := 0
	for b.Loop() {
		turns++
		for i, sb := range boxes {
			start := time.Now()
			st, err := sb.Exec(b.Context(), sandbox.Command{Argv: []string{"true"}})
			took[i] += time.Since(start)
			if err != nil || st.Code != 0 {
				b.Fatal(st, err)
			}
		}
	}
	b.ReportMetric(took[0].Seconds()*1000/float64(turns), "ms/command")
	b.ReportMetric(took[1].Seconds()*1000/float64(turns), "ms/engine-exec")
	b.ReportMetric(float64(took[1])/float64(took[0]), "times-faster")
}

// BenchmarkTwentyTrials is twenty lives at four a time, with what a trial of a
// small task asks of a sandbox: six commands, two uploads, a mark and a kill.
func BenchmarkTwentyTrials(b *testing.B) {
	be := newBackend(b)
	ctx := b.Context()
	trial := func(i int) error {
		sb, err := be.Create(ctx, sandbox.Spec{Name: fmt.Sprintf("bench-%d", i), Image: sandbox.Image{Ref: testImage}, Labels: labels(b)})
		if err != nil {
			return err
		}
		defer func() { _ = sb.Destroy(ctx) }()
		for _, dir := range []string{"/solution", "/tests"} {
			if err := sandbox.UploadBytes(ctx, sb, []byte("echo hello"), dir+"/run.sh", 0o755); err != nil {
				return err
			}
		}
		m, err := sb.Mark(ctx)
		if err != nil {
			return err
		}
		for range 6 {
			if _, err := sb.Exec(ctx, sandbox.Command{Shell: "bash /tests/run.sh"}); err != nil {
				return err
			}
		}
		return sb.KillTree(ctx, m, 0)
	}
	for b.Loop() {
		var wg sync.WaitGroup
		queue := make(chan int)
		for range 4 {
			wg.Go(func() {
				for i := range queue {
					if err := trial(i); err != nil {
						b.Error(err)
					}
				}
			})
		}
		for i := range 20 {
			queue <- i
		}
		close(queue)
		wg.Wait()
	}
}
