package job_test

import (
	"testing"

	"github.com/proctor-run/proctor/jobdir"
)

func TestTamperedRewardsAreNotTriedAgain(t *testing.T) {
	t.Parallel()
	const tampered = "RewardTamperedError"
	for _, c := range []struct {
		name    string
		include []string
		want    bool
	}{
		{"by default", nil, false},
		{"named", []string{tampered}, true},
		{"another one named", []string{"RuntimeError"}, false},
	} {
		r := jobdir.RetryConfig{MaxRetries: 1, IncludeExceptions: c.include}
		if got := r.Decide(tampered, 0); got.Retry != c.want {
			t.Errorf("%s: %+v, want retry %v", c.name, got, c.want)
		}
	}
}
