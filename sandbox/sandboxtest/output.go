package sandboxtest

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

var outputObligations = []obligation{
	{"without Stderr both are merged in order", 0, func(t *testing.T, s *suite) {
		if r := exec(t, s.shared(t), sh(ScriptBoth)); r.stdout != "out\nerr\n" {
			t.Errorf("got merged output %q, want \"out\\nerr\\n\"", r.stdout)
		}
	}},
	{"order is kept over many writes", processes, func(t *testing.T, s *suite) {
		r := exec(t, s.shared(t), sh(`for i in {1..500}; do echo o$i; echo e$i >&2; done`))
		want := output(t, s.shared(t), sh(`for i in {1..500}; do echo o$i; echo e$i; done`)) + "\n"
		if r.stdout != want {
			t.Errorf("merged output is out of order")
		}
	}},
	{"with Stderr both are apart", 0, func(t *testing.T, s *suite) {
		if r := execSplit(t, s.shared(t), sh(ScriptBoth)); r.stdout != "out\n" || r.stderr != "err\n" {
			t.Errorf("got stdout %q and stderr %q, want \"out\\n\" and \"err\\n\"", r.stdout, r.stderr)
		}
	}},
	{"Stderr alone leaves Stdout discarded", 0, func(t *testing.T, s *suite) {
		var errs strings.Builder
		cmd := sh(ScriptBoth)
		cmd.Stderr = &errs
		if st, err := s.shared(t).Exec(call(t), cmd); err != nil || st.Code != 0 || errs.String() != "err\n" {
			t.Errorf("got status %+v, error %v, stderr %q; want code 0 and \"err\\n\"", st, err, errs.String())
		}
	}},
	{"without sinks output is discarded", 0, func(t *testing.T, s *suite) {
		if st, err := s.shared(t).Exec(call(t), sh(ScriptMuch)); err != nil || st.Code != 0 {
			t.Errorf("got status %+v, error %v; want code 0", st, err)
		}
	}},
	{"output comes while the command runs", 0, func(t *testing.T, s *suite) {
		start(t, call(t), s.shared(t), sh(ScriptHang)).untilReady(t)
	}},
	{"what was written before the end is complete", processes, func(t *testing.T, s *suite) {
		for range 20 {
			if r := exec(t, s.shared(t), sh(`head -c 60000 /dev/zero; kill -KILL $$`)); len(r.stdout) != 60000 {
				t.Fatalf("got %d bytes of 60000 that were written before the command's death", len(r.stdout))
			}
		}
	}},
	{"bytes are kept as they are", processes, func(t *testing.T, s *suite) {
		r := execSplit(t, s.shared(t), sh(`printf '\0\r\n\377\200'; printf '\1\0\377' >&2`))
		if r.stdout != "\x00\r\n\xff\x80" || r.stderr != "\x01\x00\xff" {
			t.Errorf("got stdout %q, stderr %q", r.stdout, r.stderr)
		}
	}},
	{"big output needs bounded memory", 0, bigOutput},
	{"big output on both streams does not lock up", processes, func(t *testing.T, s *suite) {
		var out, errs counter
		cmd := sh(`yes | head -c 8388608 & yes e | head -c 8388608 >&2; wait`)
		cmd.Stdout, cmd.Stderr = &out, &errs
		st, err := s.shared(t).Exec(call(t), cmd)
		if err != nil || st.Code != 0 || out.n != 8<<20 || errs.n != 8<<20 {
			t.Errorf("status %+v, error %v, %d and %d bytes; want 0 and 8 MiB each", st, err, out.n, errs.n)
		}
	}},
	{"a sink that errors is not written to again and the command goes on", 0, sinkErrors},
	{"a slow sink does not block another Exec", processes, slowSink},
}

// bigOutput measures what belongs to a whole process, and so in one that does
// nothing else.
func bigOutput(t *testing.T, s *suite) {
	if !alone(t) {
		return
	}
	sb := s.shared(t)
	exec(t, sb, sh(ScriptExit3)) // what is allocated once is not counted
	c := weigher{before: inUse()}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cmd := sh(ScriptMuch)
	cmd.Stdout = &c
	st, err := sb.Exec(call(t), cmd)
	runtime.ReadMemStats(&after)
	if err != nil || st.Code != 0 || c.n != MuchBytes {
		t.Fatalf("status %+v, error %v, %d bytes; want code 0 and %d bytes", st, err, c.n, MuchBytes)
	}
	if c.most > MuchBytes*3/4 {
		t.Errorf("while %d bytes of output were read, %d bytes more than before were in use", MuchBytes, c.most)
	}
	// HeapSys grows with the largest live heap, and never with what has
	// been collected in between.
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > MuchBytes*3/4 {
		t.Errorf("reading %d bytes of output grew the heap by %d bytes", MuchBytes, grown)
	}
}

// inUse is how many bytes of the process's heap are reachable.
func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// weigher is a sink that counts, and looks now and then how much memory is in
// use: with its first bytes, when what collects output first has all of it, and
// with its last, when what keeps output has.
type weigher struct {
	n, before, most int64
}

func (w *weigher) Write(p []byte) (int, error) {
	const every = MuchBytes / 8
	first := w.n == 0
	parts := w.n / every
	w.n += int64(len(p))
	if first || w.n/every > parts {
		w.most = max(w.most, inUse()-w.before)
	}
	runtime.KeepAlive(p)
	return len(p), nil
}

// counter is a sink that only counts.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// failing is a sink that returns an error for its first write.
type failing struct{ calls int }

func (f *failing) Write([]byte) (int, error) {
	f.calls++
	return 0, errors.New("sandboxtest: sink is broken")
}

func sinkErrors(t *testing.T, s *suite) {
	f := new(failing)
	cmd := sh(ScriptMuch)
	cmd.Stdout = f
	st, err := s.shared(t).Exec(call(t), cmd)
	if err != nil || st.Code != 0 {
		t.Errorf("got status %+v, error %v; want the command's own end, code 0", st, err)
	}
	if f.calls != 1 {
		t.Errorf("the sink was written to %d times, want once", f.calls)
	}
}

// gate is a sink that does not return before it is opened.
type gate struct {
	open   chan struct{}
	inside chan struct{}
	once   sync.Once
}

func (g *gate) Write(p []byte) (int, error) {
	g.once.Do(func() { close(g.inside) })
	<-g.open
	return len(p), nil
}

func slowSink(t *testing.T, s *suite) {
	sb := s.shared(t)
	g := &gate{open: make(chan struct{}), inside: make(chan struct{})}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(g.open)
	wg.Go(func() {
		cmd := sandbox.Command{Shell: ScriptMuch, Stdout: g}
		if st, err := sb.Exec(call(t), cmd); err != nil || st.Code != 0 {
			t.Errorf("the command with the slow sink: status %+v, error %v", st, err)
		}
	})
	<-g.inside
	for range 5 {
		if got := output(t, sb, sh("echo free")); got != "free" {
			t.Errorf("got %q, want free", got)
		}
	}
}
