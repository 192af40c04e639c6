package bench_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/bench"
	"github.com/proctor-run/proctor/sandbox/fake"
)

const (
	opTake fake.Op = "take"
	opFork fake.Op = "fork"
)

// subject is a backend that takes so long for each call.
func subject(t *testing.T, name string, takes map[fake.Op]time.Duration) bench.Subject {
	b := fake.New(fake.Config{Dir: t.TempDir(), Prepares: true, Before: func(ctx context.Context, c fake.Call) error {
		select {
		case <-time.After(takes[c.Op]):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}})
	t.Cleanup(func() { fake.Verify(t, b) })
	return bench.Subject{
		Name: name, Environment: "fake", RestsOn: "nothing <real>", Backend: b, Spec: sandbox.Spec{Name: name},
		Trials: func(_ context.Context, trials, atATime int) error {
			time.Sleep(takes[fake.OpCreate] * time.Duration(trials) / time.Duration(atATime))
			return nil
		},
	}
}

// measured is what the report says of one operation of one subject.
type measured struct {
	stats
	sampled, Unable bool
	Ratio           float64
	Note            string
}

type stats struct {
	N        int
	P50, P95 float64
}

func result(t *testing.T, r *bench.Report, op, subject string) measured {
	t.Helper()
	for _, res := range r.Results {
		for _, m := range res.Subjects {
			if res.Name != op || m.Subject != subject {
				continue
			}
			out := measured{sampled: m.N > 0, Unable: m.Unable, Ratio: m.Ratio, Note: m.Note}
			if out.sampled {
				out.stats = stats{m.N, m.P50, m.P95}
			}
			return out
		}
	}
	t.Fatalf("%s of %s is not in the report", op, subject)
	return measured{}
}

// everything but what looks at this machine.
var simulated = []string{
	"create", "first-command", "ready", "command", "parallel", "upload-1", "download-1",
	"reset", "reset-again", "fork", "pool", "destroy", "life", "trials",
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := subject(t, "slow", map[fake.Op]time.Duration{
			fake.OpCreate: 100 * time.Millisecond, fake.OpExec: 40 * time.Millisecond, fake.OpDestroy: 50 * time.Millisecond,
			opTake: 100 * time.Millisecond, opFork: 100 * time.Millisecond, fake.OpUpload: 30 * time.Millisecond, fake.OpDownload: 30 * time.Millisecond,
		})
		fast := subject(t, "fast", map[fake.Op]time.Duration{
			fake.OpCreate: 10 * time.Millisecond, fake.OpExec: 4 * time.Millisecond, fake.OpDestroy: 5 * time.Millisecond,
			opTake: time.Millisecond, opFork: 5 * time.Millisecond, fake.OpUpload: 3 * time.Millisecond, fake.OpDownload: 3 * time.Millisecond,
		})
		var said []string
		report, err := bench.Run(t.Context(), bench.Options{
			Subjects: []bench.Subject{slow, fast}, Runs: 4, Only: simulated, Trials: 8, AtATime: 2, Now: time.Now,
			Progress: func(line string) { said = append(said, line) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(said[:4], "; "), "warming up: slow; warming up: fast; round 1 of 4: fast; round 1 of 4: slow"; got != want {
			t.Errorf("the order was %q, want %q: subjects take turns in beginning", got, want)
		}
		for _, c := range []struct {
			op       string
			n        int
			p50      float64
			ratio    float64
			slowHalf float64
		}{
			{"create", 4, 0.010, 10, 0.1}, {"first-command", 4, 0.004, 10, 0.04}, {"ready", 4, 0.014, 10, 0.14},
			{"command", 32, 0.004, 10, 0.04}, {"parallel", 4, 4000, 10, 400}, {"destroy", 4, 0.005, 10, 0.05}, {"life", 4, 0.019, 10, 0.19},
			{"upload-1", 4, 0.003, 10, 0.03}, {"download-1", 4, 0.003, 10, 0.03},
			{"pool", 4, 0.001, 100, 0.1}, {"fork", 4, 0.005, 20, 0.1}, {"trials", 3, 200, 10, 20},
		} {
			m := result(t, report, c.op, "fast")
			if !m.sampled || m.N != c.n || !near(m.P50, c.p50) || !near(m.P95, c.p50) || !near(m.Ratio, c.ratio) {
				t.Errorf("%s of fast: %+v %+v, want n %d, p50 %v, ratio %v", c.op, m, m.stats, c.n, c.p50, c.ratio)
			}
			if m := result(t, report, c.op, "slow"); !m.sampled || !near(m.P50, c.slowHalf) {
				t.Errorf("%s of slow: %+v, want %v", c.op, m.stats, c.slowHalf)
			}
		}
		for _, op := range []string{"reset", "reset-again"} {
			if m := result(t, report, op, "fast"); !m.sampled || m.N != 4 {
				t.Errorf("%s: %+v", op, m)
			}
		}
	})
}

func near(got, want float64) bool { return got > want*0.99 && got < want*1.01 }

// A reset, a fork and a pool are compared with the creation of the base, also
// where that is not wanted itself.
func TestComparedWithCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := subject(t, "base", map[fake.Op]time.Duration{fake.OpCreate: 100 * time.Millisecond, opTake: 5 * time.Millisecond})
		report, err := bench.Run(t.Context(), bench.Options{Subjects: []bench.Subject{base}, Runs: 1, Only: []string{"pool", "download-100"}, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Results) != 2 || report.Results[0].Name != "download-100" || report.Results[1].BaseSubject != "base" {
			t.Errorf("the report has %+v, want what was asked for, compared with base", report.Results)
		}
		if m := result(t, report, "download-100", "base"); !m.sampled || m.N != 1 {
			t.Errorf("download: %+v, want one sample", m)
		}
		if m := result(t, report, "pool", "base"); !near(m.Ratio, 20) {
			t.Errorf("ratio %v, want 20", m.Ratio)
		}
	})
}

func TestWhatFailsIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := errors.New("no more sandboxes")
		b := fake.New(fake.Config{Dir: t.TempDir(), Before: fake.FailAt(fake.OpCreate, 3, dead)})
		defer fake.Verify(t, b)
		fine := subject(t, "fine", map[fake.Op]time.Duration{fake.OpCreate: time.Millisecond})
		report, err := bench.Run(t.Context(), bench.Options{
			Subjects: []bench.Subject{{Name: "failing", Backend: b, Spec: sandbox.Spec{Name: "f"}}, fine},
			Runs:     3, Only: []string{"create", "pool", "trials"}, Trials: 1, Now: time.Now,
		})
		if err != nil {
			t.Fatal(err)
		}
		if m := result(t, report, "create", "failing"); m.N != 1 || m.Note != "" {
			t.Errorf("create: %+v, want the sample that there is", m)
		}
		for _, op := range []string{"pool", "trials"} {
			if m := result(t, report, op, "failing"); !m.Unable || m.sampled {
				t.Errorf("%s: %+v, want that the backend has no such ability", op, m)
			}
		}
		if n := b.Count(fake.OpCreate); n != 3 {
			t.Errorf("%d were created, want 3: what failed is not asked for again", n)
		}
	})
}

func TestInterruptLeavesNothing(t *testing.T) {
	for after := range 40 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			stop := errors.New("enough")
			var calls atomic.Int64
			b := fake.New(fake.Config{Dir: t.TempDir(), Prepares: true, Before: func(context.Context, fake.Call) error {
				if calls.Add(1) == int64(after) {
					cancel(stop)
				}
				return nil
			}})
			s := bench.Subject{Name: "s", Backend: b, Spec: sandbox.Spec{Name: "s"}}
			_, err := bench.Run(ctx, bench.Options{Subjects: []bench.Subject{s}, Runs: 1, Only: []string{"create", "command", "upload-1", "reset", "fork", "pool"}, Now: time.Now})
			if after > 0 && !errors.Is(err, stop) {
				t.Errorf("interrupted at call %d: error %v", after, err)
			}
			cancel(nil)
			fake.Verify(t, b)
		})
	}
}

func TestRefusals(t *testing.T) {
	s := bench.Subject{Name: "s", Backend: fake.New(fake.Config{Dir: t.TempDir()})}
	for name, o := range map[string]bench.Options{
		"no subject":        {Runs: 1},
		"no rounds":         {Subjects: []bench.Subject{s}},
		"unknown operation": {Subjects: []bench.Subject{s}, Runs: 1, Only: []string{"teleport"}},
	} {
		o.Now = time.Now
		if _, err := bench.Run(t.Context(), o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := subject(t, "engine", map[fake.Op]time.Duration{fake.OpCreate: 1500 * time.Millisecond})
		b := subject(t, "host & own", map[fake.Op]time.Duration{fake.OpCreate: 15 * time.Millisecond})
		b.Trials = nil
		report, err := bench.Run(t.Context(), bench.Options{Subjects: []bench.Subject{a, b}, Runs: 1, Only: []string{"create", "trials"}, Trials: 3, AtATime: 1, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		var table, chart strings.Builder
		if err := errors.Join(report.WriteTable(&table), report.WriteSVG(&chart)); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"engine: nothing <real>", "create     engine      1.50 s    1.50 s    1  1.00×", "host & own  15.0 ms   15.0 ms   1  100×", "trials     engine      0.67 1/s", "host & own  -"} {
			if !strings.Contains(table.String(), want) {
				t.Errorf("the table has no %q:\n%s", want, table.String())
			}
		}
		bars := 0
		for d := xml.NewDecoder(strings.NewReader(chart.String())); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("the chart is no XML: %v\n%s", err, chart.String())
			}
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
				bars++
			}
		}
		if bars != 4 { // the background, and a bar for each measurement
			t.Errorf("the chart has %d rectangles, want 4:\n%s", bars, chart.String())
		}
		data, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`"subjects":[{"name":"engine","environment":"fake","rests_on":"nothing \u003creal\u003e"}`,
			`{"subject":"host \u0026 own","n":1,"p50":0.015,"p95":0.015,"best":0.015,"ratio":100}`,
			`{"subject":"host \u0026 own","unable":true,"note":"the backend cannot do this"}`, `"against":"create","base":"engine"`,
		} {
			if !strings.Contains(string(data), want) {
				t.Errorf("the JSON has no %s:\n%s", want, data)
			}
		}
	})
}
