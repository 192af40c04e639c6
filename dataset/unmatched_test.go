package dataset_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/dataset"
	"github.com/proctor-run/proctor/harbor"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	names := []string{"hello-world", "build-rpn", "build-sum"}
	filter := harbor.Filter{Include: []string{"hello*", "buidl*", "hello-wrld", "buidl*", "*"}, Exclude: []string{"build-?pn", "nothing like it"}}
	want := []string{
		`no task of "set" matches "buidl*"; did you mean build-rpn?`,
		`no task of "set" matches "hello-wrld"; did you mean hello-world?`,
		`no task of "set" matches "nothing like it"`,
	}
	kept, unmatched, err := dataset.Choose("set", filter, names)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{0, 2}, kept); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, unmatched.Lines()); diff != "" {
		t.Error(diff)
	}
	if _, unmatched, err := dataset.Choose("set", harbor.Filter{}, names); unmatched != nil || err != nil {
		t.Errorf("without patterns: %v, %v", unmatched, err)
	}
}

// TestChooseNothing: the error is Harbor's, and names the nearest.
func TestChooseNothing(t *testing.T) {
	t.Parallel()
	_, _, err := dataset.Choose("set", harbor.Filter{Include: []string{"helo-world", "zzz"}}, []string{"hello-world"})
	if err == nil {
		t.Fatal("a filter that keeps nothing is no error")
	}
	first, rest, _ := strings.Cut(err.Error(), "\n")
	if !strings.HasPrefix(first, "No tasks matched the filter(s) ['helo-world', 'zzz']. There are 1 tasks available") {
		t.Errorf("it begins with %q", first)
	}
	if want := `"helo-world"; did you mean hello-world?`; rest != want {
		t.Errorf("then %q, want %q", rest, want)
	}
}
