package sandbox_test

import (
	"slices"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

func TestMergeEnv(t *testing.T) {
	t.Parallel()
	got := sandbox.MergeEnv([]string{"A=1", "B=1", "A=2"}, nil, []string{"C=1", "B=2=3"})
	if want := []string{"A=2", "B=2=3", "C=1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	base := []string{"PATH=/bin", "A=1", "ODD"}
	got = sandbox.MergeEnv(base, []string{"A=2", "B=x=y", "ODD=even", "B="})
	if want := []string{"PATH=/bin", "A=2", "ODD=even", "B="}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !slices.Equal(base, []string{"PATH=/bin", "A=1", "ODD"}) {
		t.Errorf("the first list became %q", base)
	}
}

func TestMergeEnvKeepsWhatItWasGiven(t *testing.T) {
	t.Parallel()
	base := []string{"PATH=/bin", "A=1", "ODD"}
	got := sandbox.MergeEnv(base, []string{"A=2", "B=x=y", "ODD=even", "B="})
	if want := []string{"PATH=/bin", "A=2", "ODD=even", "B="}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !slices.Equal(base, []string{"PATH=/bin", "A=1", "ODD"}) {
		t.Errorf("the base became %q", base)
	}
}
