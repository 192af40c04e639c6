package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/llm"
)

// TestKeep: the file is written again when there is twice as much, or after half a
// minute, and not otherwise.
func TestKeep(t *testing.T) {
	t.Parallel()
	dir, at := t.TempDir(), time.Unix(0, 0)
	r := newRecord(place{dir: dir}, "m", func() time.Time { return at })
	steps := func() int {
		data, err := os.ReadFile(filepath.Join(dir, trajectoryFile))
		if err != nil {
			return 0
		}
		made, err := atif.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		return len(made.Steps)
	}
	r.open("system", []llm.Part{{Text: "task"}}, nil)
	for i, c := range []struct {
		text  string
		after time.Duration
		want  int
	}{
		{strings.Repeat("x", 4000), 0, 3},
		{"little", 0, 3},
		{"little", 29 * time.Second, 3},
		{"little", time.Second, 6},
		{strings.Repeat("x", 4000), time.Second, 6},
		{strings.Repeat("x", 4000), time.Second, 8},
	} {
		at = at.Add(c.after)
		r.remind(c.text)
		r.keep()
		if n := steps(); n != c.want {
			t.Errorf("after %d steps more the file has %d, want %d", i+1, n, c.want)
		}
	}
}

// TestKeepFails: a directory that is gone is told in the report, and ends nothing.
func TestKeepFails(t *testing.T) {
	t.Parallel()
	p := newPlayer(options{}, stub{}, place{dir: filepath.Join(t.TempDir(), "gone")}, time.Now)
	p.see(nil, nil)
	r := p.Report()
	text, ok := r.Metadata.Get("trajectory_error")
	if !ok || r.InputTokens != nil || r.CostUSD != nil {
		t.Errorf("result %+v, %v", r, text)
	}
}

// stub is a model that is not asked.
type stub struct{ llm.Model }

func (stub) Info() llm.Info { return llm.Info{} }
