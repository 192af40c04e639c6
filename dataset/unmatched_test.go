package dataset_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/dataset"
	"github.com/proctor-run/proctor/harbor"
)

func TestUnmatched(t *testing.T) {
	t.Parallel()
	names := []string{"hello-world", "build-rpn"}
	filter := harbor.Filter{Include: []string{"hello*", "buidl*", "hello-wrld", "buidl*"}, Exclude: []string{"build-?pn", "nothing like it"}}
	want := []string{
		`no task of "set" matches "buidl*"`,
		`no task of "set" matches "hello-wrld"; did you mean hello-world?`,
		`no task of "set" matches "nothing like it"`,
	}
	if diff := cmp.Diff(want, dataset.Unmatched("set", filter, names)); diff != "" {
		t.Error(diff)
	}
	if got := dataset.Unmatched("set", harbor.Filter{}, names); got != nil {
		t.Errorf("without patterns: %q", got)
	}
}
