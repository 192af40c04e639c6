package reward_test

import (
	"errors"
	"testing"

	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// FuzzParseJSON checks that whatever is accepted is written and read back as the
// same rewards, as a job is that is resumed, and that all errors are typed.
func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{`{"a": true, "b": "2", "c": 3, "a": " 1_000 "}`, "null", `{"a": NaN, "\ud800": 1e400}`, `{"a": [], "b": "\udc00", "c": null}`, "[1]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := reward.ParseJSON(data, "reward.json")
		if err != nil {
			checkTyped(t, err)
			return
		}
		text := value.AppendDumps(nil, r.Object(), value.DumpsOptions{})
		back, err := reward.ParseJSON(text, "reward.json")
		if err != nil || !identical(r.Object(), back.Object()) {
			t.Fatalf("%q gives %s, which comes back as %s, error %v", data, text, value.Repr(back.Object()), err)
		}
		for _, metric := range []reward.Metric{reward.Mean, reward.Sum, reward.Max, reward.Min} {
			if _, err := reward.Aggregate(metric, []*reward.Rewards{r, nil}); err != nil && !errors.Is(err, value.OverflowError) {
				t.Fatalf("%s of %q: %v", metric, data, err)
			}
		}
	})
}

// FuzzParseText checks that accepted text gives one float, and that all errors are
// typed.
func FuzzParseText(f *testing.F) {
	for _, seed := range []string{" 1_0.5\r\n", "\u0661", "nan", "-0", "0x1", "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := reward.ParseText(data, "reward.txt")
		if err != nil {
			checkTyped(t, err)
			return
		}
		if x, ok := r.Get(reward.Name); !ok || r.Len() != 1 {
			t.Fatalf("%q gives %s", data, value.Repr(r.Object()))
		} else if _, isFloat := x.(value.Float); !isFloat {
			t.Fatalf("%q gives %T", data, x)
		}
	})
}

func checkTyped(t *testing.T, err error) {
	t.Helper()
	var e *reward.Error
	if !errors.As(err, &e) || e.Message == "" || !errors.Is(err, e.Kind) {
		t.Fatalf("error of an unknown kind: %v", err)
	}
}
