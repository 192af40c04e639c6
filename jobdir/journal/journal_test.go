package journal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/procid"
)

func drawEntry(t *rapid.T) journal.Entry {
	e := journal.Entry{
		Kind: rapid.SampledFrom([]journal.Kind{
			journal.JobStarted, journal.TrialStarted, journal.SandboxCreated, journal.TrialFinished, "of a later version",
		}).Draw(t, "kind"),
		Trial:    rapid.String().Draw(t, "trial"),
		Attempt:  rapid.IntRange(0, 1<<40).Draw(t, "attempt"),
		Sandbox:  rapid.StringMatching(`[a-z"\\\n]*`).Draw(t, "sandbox"),
		Reason:   rapid.String().Draw(t, "reason"),
		Rewarded: rapid.Bool().Draw(t, "rewarded"),
	}
	if rapid.Bool().Draw(t, "owned") {
		e.Owner = &procid.ID{BootID: rapid.String().Draw(t, "boot"), PID: rapid.Int().Draw(t, "pid"), StartTicks: rapid.Uint64().Draw(t, "ticks")}
		e.Config = json.RawMessage(`{"a":[1.0,null]}`)
	}
	if rapid.Bool().Draw(t, "paid") {
		e.CostUSD = new(rapid.Float64Range(-1e9, 1e9).Draw(t, "cost"))
		e.InputTokens = "123456789012345678901234567890"
		e.ResultDigest = new(jobdir.DigestOf([]byte(e.Trial)))
	}
	return e
}

// TestJournalSurvivesCuts writes journals through kills at any byte, and finds
// every entry again that was written in full.
func TestJournalSurvivesCuts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, journal.File)
	rapid.Check(t, func(t *rapid.T) {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		var want []journal.Entry
		clock := time.Date(2026, 6, 9, 8, 0, 0, 0, time.UTC)
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			entries := rapid.SliceOfN(rapid.Custom(drawEntry), 0, 4).Draw(t, "entries")
			sizes, err := journal.WriteEntries(dir, func() time.Time { return clock }, entries...)
			if err != nil {
				t.Fatal(err)
			}
			for i := range entries {
				entries[i].Time = clock
			}
			kept := len(entries)
			if rapid.Bool().Draw(t, "killed") && kept > 0 {
				kept--
				at := rapid.Int64Range(sizes[kept], sizes[kept+1]-1).Draw(t, "at")
				if err := os.Truncate(path, at); err != nil {
					t.Fatal(err)
				}
			}
			want = append(want, entries[:kept]...)
			got, err := journal.Load(dir)
			if err != nil || got.Torn != (got.Size != fileSize(t, path)) || !slices.EqualFunc(got.Entries, want, sameEntry) {
				t.Fatalf("read %+v (%v), want %+v", got, err, want)
			}
			if c := got.Chain; len(c.Broken) > 0 || c.Lines != len(want) || c.Linked != max(0, len(want)-1) {
				t.Fatalf("the chain of an untouched journal of %d lines is %+v", len(want), c)
			}
			if state, err := journal.LoadState(dir); err != nil || !reflect.DeepEqual(state, journal.NewState(got)) {
				t.Fatalf("the state is %+v (%v), want %+v", state, err, journal.NewState(got))
			}
		}
	})
}

// sameEntry compares as JSON does: what is no text of characters becomes one.
func sameEntry(a, b journal.Entry) bool {
	a.Prev, b.Prev = "", "" // is of the lines before, which checkChain holds
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

// TestChain: what is done to a journal afterwards shows.
func TestChain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	entries := make([]journal.Entry, 5)
	for i := range entries {
		entries[i] = journal.Entry{Kind: journal.TrialFinished, Trial: fmt.Sprint("t", i), Rewarded: i%2 == 0}
	}
	if _, err := journal.WriteEntries(dir, time.Now, entries...); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, journal.File))
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(bytes.Lines(data))
	with := func(change func([][]byte) [][]byte) []byte { return bytes.Join(change(slices.Clone(lines)), nil) }
	for _, tt := range []struct {
		name   string
		text   []byte
		broken []int
	}{
		{"untouched", data, nil},
		{"a changed line", with(func(l [][]byte) [][]byte {
			l[1] = bytes.Replace(l[1], []byte(`"t1"`), []byte(`"t9"`), 1)
			return l
		}), []int{3}},
		{"a line left out", with(func(l [][]byte) [][]byte { return slices.Delete(l, 2, 3) }), []int{3}},
		{"the first line left out", with(func(l [][]byte) [][]byte { return l[1:] }), []int{1}},
		{"a line twice", with(func(l [][]byte) [][]byte { return slices.Insert(l, 2, l[1]) }), []int{3}},
		{"lines in another order", with(func(l [][]byte) [][]byte { l[3], l[4] = l[4], l[3]; return l }), []int{4, 5}},
		{"a line that names none before it", with(func(l [][]byte) [][]byte {
			return append(l, []byte(`{"event":"trial_finished","trial":"t9"}`+"\n"))
		}), []int{6}},
		{"a damaged line", with(func(l [][]byte) [][]byte { l[2] = []byte("damage\n"); return l }), []int{3, 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j, _ := journal.Read(bytes.NewReader(tt.text))
			if !slices.Equal(j.Chain.Broken, tt.broken) {
				t.Errorf("got broken lines %v, want %v", j.Chain.Broken, tt.broken)
			}
		})
	}
}

type fatal interface{ Fatal(...any) }

func fileSize(t fatal, path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestRead(t *testing.T) {
	t.Parallel()
	const good = `{"time":"2026-06-09T08:00:00Z","event":"trial_started","trial":"a"}` + "\n"
	long := `{"event":"x","reason":"` + strings.Repeat("x", 1<<20) + `"}` + "\n"
	for _, tt := range []struct {
		name, text string
		entries    int
		torn       bool
		size       int
		err        string
	}{
		{name: "nothing"},
		{name: "whole", text: good + good, entries: 2, size: 2 * len(good)},
		{name: "a last line without its end", text: good + good[:len(good)-1], entries: 1, torn: true, size: len(good)},
		{name: "a last line of zeros", text: good + "\x00\x00\x00", entries: 1, torn: true, size: len(good)},
		{name: "a last line that ends and is nothing", text: good + "\x00\x00\n", entries: 1, torn: true, size: len(good)},
		{name: "a last line that is too long", text: good + long, entries: 1, torn: true, size: len(good)},
		{name: "another event, other fields", text: `{"event":"new","field":[1]}` + "\n", entries: 1, size: 28},
		{name: "damage in the middle", text: good + "garbage\n" + good, entries: 2, size: 2*len(good) + 8, err: "line 2: invalid character"},
		{name: "an empty line", text: "\n" + good, entries: 1, size: 1 + len(good), err: "line 1: "},
		{name: "a line too long", text: long + good, entries: 1, size: len(long) + len(good), err: "line 1: longer than 1048576 bytes"},
		{name: "no event", text: `{"time":"2026-06-09T08:00:00Z"}` + "\n" + good, entries: 1, size: 32 + len(good), err: "line 1: it does not name its event"},
		{name: "another type", text: good + `{"event":"x","attempt":"1"}` + "\n" + good, entries: 2, size: 2*len(good) + 28, err: "line 2: json: cannot unmarshal"},
		{name: "damage and a torn end", text: "x\n" + good + "y\nz", entries: 1, torn: true, size: 2 + len(good) + 2, err: "line 1: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j, err := journal.Read(strings.NewReader(tt.text))
			if len(j.Entries) != tt.entries || j.Torn != tt.torn || j.Size != int64(tt.size) {
				t.Errorf("%d entries, torn %v, size %d; want %d, %v and %d", len(j.Entries), j.Torn, j.Size, tt.entries, tt.torn, tt.size)
			}
			switch {
			case tt.err == "" && err != nil, tt.err != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.err)):
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if damaged, ok := errors.AsType[*journal.Error](err); tt.err != "" && (!ok || damaged.Line == 0) {
				t.Errorf("the error is a %T", err)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"time":"2026-06-09T08:00:00Z","event":"job_started","owner":{"boot_id":"b","pid":1,"start_ticks":2},"config":{}}` + "\n{"))
	f.Add([]byte("\n\n{}\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		j, err := journal.Read(bytes.NewReader(data))
		if j.Size > int64(len(data)) || (err == nil && !j.Torn && j.Size != int64(len(data))) {
			t.Errorf("%d of %d bytes are whole", j.Size, len(data))
		}
		again, errAgain := journal.Read(bytes.NewReader(data[:j.Size]))
		if again.Torn && err == nil || !reflect.DeepEqual(again.Entries, j.Entries) || (err == nil) != (errAgain == nil) && err == nil {
			t.Errorf("what is whole reads differently: %+v (%v), before %+v (%v)", again, errAgain, j, err)
		}
		journal.NewState(j) // must not panic
	})
}

func ExampleRead() {
	j, err := journal.Read(strings.NewReader(`{"time":"2026-06-09T08:00:00Z","event":"job_started","n_trials":2}
{"time":"2026-06-09T08:00:01Z","event":"trial_started","trial":"hello__abcdefg","attempt":1}
{"time":"2026-06-09T08:00:02Z","event":"agent_started","trial":"hello__abcdefg","attempt":1}
{"time":"2026-06-0`))
	if err != nil {
		fmt.Println(err)
		return
	}
	s := journal.NewState(j)
	fmt.Println(len(j.Entries), "entries, torn:", j.Torn)
	fmt.Println("agents that began and whose end is not known:", s.Spent().Unknown)
	// Output:
	// 3 entries, torn: true
	// agents that began and whose end is not known: 1
}
