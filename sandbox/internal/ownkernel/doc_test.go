package ownkernel

import "testing"

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, want := range []Limits{{}, {PIDs: 1, Memory: 2, CPUQuota: 3, CPUPeriod: 4}} {
		if got, err := ParseLimits(want.String()); got != want || err != nil {
			t.Errorf("%s: got %+v, %v", want, got, err)
		}
	}
	for _, text := range []string{"", "1", `{"memory": "1"}`, "{} {}"} {
		if got, err := ParseLimits(text); err == nil {
			t.Errorf("%q: got %+v, want an error", text, got)
		}
	}
}
