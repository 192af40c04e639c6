package atif_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/value"
)

func nothing(value.Value) error { return nil }

// sameTrajectory compares what two trajectories are written as.
func sameTrajectory(t interface{ Fatalf(string, ...any) }, got, want *atif.Trajectory) {
	a, b := value.AppendPydantic(nil, got.Object(), 0), value.AppendPydantic(nil, want.Object(), 0)
	if diff := cmp.Diff(string(b), string(a)); diff != "" {
		t.Fatalf("want -, got +:\n%s", diff)
	}
}

// document makes a trajectory with odd spaces, names and texts.
func document(t *rapid.T) (text string, steps int) {
	space := rapid.SampledFrom([]string{"", " ", "\n", "\t\r\n "})
	odd := rapid.SampledFrom([]string{"", "plain", `\"`, `\\`, `]},{[`, `\u0022`, "é漢", `steps\": [`, `\\\"`})
	sp := func() string { return space.Draw(t, "space") }
	var list []string
	for i := range rapid.IntRange(1, 6).Draw(t, "steps") {
		list = append(list, fmt.Sprintf(`{"step_id":%s%d,"source":"agent","message"%s:"%s","extra":{"steps":[1,[2,"%s"]]}}`, sp(), i+1, sp(), odd.Draw(t, "text"), odd.Draw(t, "text")))
	}
	members := rapid.Permutation([]string{
		`"steps"` + sp() + ":" + sp() + "[" + sp() + strings.Join(list, sp()+","+sp()) + sp() + "]",
		`"agent":{"name":"a","version":"` + odd.Draw(t, "text") + `"}`, `"notes":` + sp() + `"` + odd.Draw(t, "text") + `"`,
		`"extra":{"steps":[{"step_id":9}],"n":-1.5e3}`, `"schema_version": "ATIF-v1.6"`,
	}).Draw(t, "members")
	return sp() + "{" + sp() + strings.Join(members, sp()+","+sp()) + sp() + "}" + sp(), len(list)
}

// TestIndex: what is read by parts is what is read as a whole.
func TestIndex(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, steps := document(t)
		want, err := atif.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		var seen []value.Value
		x, err := atif.NewIndex(strings.NewReader(text), func(step value.Value) error { seen = append(seen, step); return nil })
		if err != nil || x.Len() != steps || len(seen) != steps {
			t.Fatalf("%v: %d and %d steps, want %d, in %s", err, x.Len(), len(seen), steps, text)
		}
		got, err := x.Read(strings.NewReader(text), 1, steps)
		if err != nil {
			t.Fatal(err)
		}
		sameTrajectory(t, got, want)
		first := rapid.IntRange(1, steps).Draw(t, "first")
		last := rapid.IntRange(first, steps).Draw(t, "last")
		if got, err = x.Read(strings.NewReader(text), first, last); err != nil {
			t.Fatal(err)
		}
		want.Steps = want.Steps[first-1 : last]
		sameTrajectory(t, got, want)
		if got.Steps[0].ID != first {
			t.Fatalf("the first step is %d, want %d", got.Steps[0].ID, first)
		}
	})
}

// TestIndexOfOthers: of a name that comes twice the last value counts, also where it is
// written with escapes; what is no trajectory is an error.
func TestIndexOfOthers(t *testing.T) {
	t.Parallel()
	const agent = `"agent": {"name": "a", "version": "1"}`
	text := `{"steps": [{"step_id": 7}], ` + agent + `, "st\u0065ps": [{"step_id": 1, "source": "user", "message": "hi"}]}`
	x, err := atif.NewIndex(strings.NewReader(text), nothing)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := x.Read(strings.NewReader(text), 1, 10); err != nil || len(got.Steps) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, text := range []string{
		"", "[]", "hello", "{", `{"steps": [`, `{"steps": [{"step_id": 1}`, `{"a": tru}`, `{"a" 1}`, `{"steps": [1,}`, `{"steps": [{]]}`, `{"a": 1} x`, `{,}`, `{"a": "`,
	} {
		if _, err := atif.NewIndex(strings.NewReader(text), nothing); err == nil {
			t.Errorf("%q has an index", text)
		} else if _, ok := errors.AsType[*atif.Invalid](err); !ok {
			t.Errorf("%q: %T %v", text, err, err)
		}
	}
	for _, text := range []string{`{}`, `{"steps": 1, ` + agent + `}`, `{"steps": [], ` + agent + `}`, `{"steps": [{"step_id": 2, "source": "user", "message": ""}], ` + agent + `}`} {
		x, err := atif.NewIndex(strings.NewReader(text), nothing)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		_, want := atif.Parse([]byte(text))
		if _, err := x.Read(strings.NewReader(text), 1, 10); err == nil || err.Error() != want.Error() {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	stop := errors.New("enough")
	if _, err := atif.NewIndex(strings.NewReader(text), func(value.Value) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

// FuzzIndex: a file that is read as a whole is read by parts, with the same steps.
func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"steps": [{"step_id": 1, "source": "user", "message": "hi"}], "agent": {"name": "a", "version": "1"}}`))
	f.Add([]byte(`{"steps":[1,2],"a":{"b":"\"]}"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := atif.NewIndex(bytes.NewReader(data), nothing)
		if err != nil {
			return
		}
		got, err := x.Read(bytes.NewReader(data), 1, x.Len())
		want, wantErr := atif.Parse(data)
		if err == nil && wantErr == nil {
			sameTrajectory(t, got, want)
		}
		if wantErr == nil && err != nil {
			t.Fatalf("%v in %q", err, data)
		}
	})
}
