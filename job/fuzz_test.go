package job_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/jobdir"
)

// seed adds a file of each fixture.
func seed(f *testing.F, name string, add func(data []byte)) {
	f.Helper()
	for _, fixture := range jobtest.Fixtures() {
		data, err := os.ReadFile(filepath.Join(fixture, name))
		if err != nil {
			f.Fatal(err)
		}
		add(data)
	}
}

// FuzzParseConfig reads anything; what it accepts it writes so that it reads
// back equal.
func FuzzParseConfig(f *testing.F) {
	seed(f, "config.json", func(data []byte) { f.Add(data, false) })
	f.Add([]byte("job_name: x\norchestrator: {quiet: on}\ndatasets: [{name: d, registry: {url: u}}]\nretry: {include_exceptions: [A, A]}"), true)
	f.Fuzz(func(t *testing.T, data []byte, yaml bool) {
		format := jobdir.JSON
		if yaml {
			format = jobdir.YAML
		}
		c, _, err := jobdir.ParseConfig(data, format, time.Time{})
		if err != nil {
			return
		}
		text := c.AppendJSON(nil, nil)
		again, _, err := jobdir.ParseConfig(text, jobdir.JSON, time.Time{})
		if err != nil {
			t.Fatalf("reading back: %v\n%s", err, text)
		}
		if got := again.AppendJSON(nil, nil); string(got) != string(text) || !again.Equal(c, nil) {
			t.Fatalf("got\n%s\nwant\n%s", got, text)
		}
	})
}

// FuzzParseResult is [FuzzParseConfig] for results.
func FuzzParseResult(f *testing.F) {
	seed(f, "result.json", func(data []byte) { f.Add(data) })
	f.Add([]byte(`{"id":"00000000-0000-4000-8000-000000000002","started_at":"2026-06-09T10:00:00","n_total_trials":5,"stats":{"n_trials":3},"status":{"n_retries":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := jobdir.ParseResult(data)
		if err != nil {
			return
		}
		text := r.AppendJSON(nil)
		again, err := jobdir.ParseResult(text)
		if err != nil {
			t.Fatalf("reading back: %v\n%s", err, text)
		}
		if got := again.AppendJSON(nil); string(got) != string(text) {
			t.Fatalf("got\n%s\nwant\n%s", got, text)
		}
	})
}

// FuzzParseLock is [FuzzParseConfig] for locks.
func FuzzParseLock(f *testing.F) {
	seed(f, "lock.json", func(data []byte) { f.Add(data) })
	f.Add(exampleLock().AppendJSON(nil, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := jobdir.ParseLock(data)
		if err != nil {
			return
		}
		text := l.AppendJSON(nil, nil)
		again, err := jobdir.ParseLock(text)
		if err != nil {
			t.Fatalf("reading back: %v\n%s", err, text)
		}
		if got := again.AppendJSON(nil, nil); string(got) != string(text) || !again.Equal(l, nil) {
			t.Fatalf("got\n%s\nwant\n%s", got, text)
		}
	})
}
