package sandboxtest

import (
	"strings"
	"testing"
)

// TestAlone: a test that needs a process of its own gets one, from anywhere.
func TestAlone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "with spaces, (brackets) and $", "a"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, inner := range []string{"inner", "inner again"} {
				t.Run(inner, func(t *testing.T) {
					alone(t)
				})
			}
		})
	}
}

func TestPassed(t *testing.T) {
	t.Parallel()
	const name = "TestX/a.b"
	for out, want := range map[string]bool{
		"=== RUN   TestX\n=== RUN   TestX/a.b\n--- PASS: TestX (0.00s)\n    --- PASS: TestX/a.b (1.20s)\nPASS\n": true,
		"--- PASS: TestX (0.00s)\n    --- SKIP: TestX/a.b (0.00s)\nPASS\n":                                       false,
		"testing: warning: no tests to run\nPASS\n":                                                              false,
		"--- PASS: TestX (0.00s)\n    --- PASS: TestX/a.b#01 (0.00s)\nPASS\n":                                    false,
		"--- FAIL: TestX (0.00s)\n    --- FAIL: TestX/a.b (0.00s)\nFAIL\n":                                       false,
		"": false,
	} {
		if got := passed([]byte(out), name); got != want {
			t.Errorf("%q: got %t, want %t", out, got, want)
		}
	}
}

func TestExactly(t *testing.T) {
	t.Parallel()
	if got, want := exactly("TestX/a.b/c_(d)"), `^TestX$/^a\.b$/^c_\(d\)$`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	args := strings.Join(againArgs(t, "x"), " ")
	if !strings.HasPrefix(args, "-test.run=x -test.count=1 -test.v") || strings.Count(args, "-test.run=") != 1 {
		t.Errorf("arguments %q", args)
	}
}
