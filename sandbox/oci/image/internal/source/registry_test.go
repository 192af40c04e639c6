package source

import (
	"net/http"
	"testing"
	"time"
)

func TestCheckRedirect(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		from, to string
		ok       bool
	}{
		{"https://registry.example/v2/", "https://cdn.example/blob", true},
		{"https://registry.example/v2/", "https://registry.example/elsewhere", true},
		{"https://registry.example/v2/", "https://169.254.169.254/latest", false},
		{"https://registry.example/v2/", "https://10.1.2.3/", false},
		{"https://registry.example/v2/", "https://127.0.0.1/", false},
		{"https://registry.example/v2/", "https://[::1]/", false},
		{"https://registry.example/v2/", "https://localhost/", false},
		{"http://localhost:5000/v2/", "http://127.0.0.1:9000/", true},
		{"https://10.0.0.1/v2/", "https://10.0.0.2/", true},
	} {
		from, err := http.NewRequest(http.MethodGet, tc.from, nil)
		if err != nil {
			t.Fatal(err)
		}
		to, err := http.NewRequest(http.MethodGet, tc.to, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkRedirect(to, []*http.Request{from}); (err == nil) != tc.ok {
			t.Errorf("from %s to %s: got %v, want allowed: %t", tc.from, tc.to, err, tc.ok)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := &retrier{now: func() time.Time { return now }}
	for _, tc := range []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"7", 7 * time.Second, true},
		{"0", 0, true},
		{now.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second, true},
		{now.Add(-time.Hour).Format(http.TimeFormat), 0, true},
		{"", 0, false},
		{"-1", 0, false},
		{"soon", 0, false},
		{"99999999999999999999", 0, false},
	} {
		got, ok := r.retryAfter(http.Header{"Retry-After": {tc.value}})
		if got != tc.want || ok != tc.ok {
			t.Errorf("Retry-After %q: got %v %t, want %v %t", tc.value, got, ok, tc.want, tc.ok)
		}
	}
}
