package jobdir_test

import (
	"testing"
	"time"

	"github.com/proctor-run/proctor/jobdir"
)

// TestBackends: a configuration says the same when it is read again, whatever
// backend it names: one of Harbor's, of proctor's or of somebody else's.
func TestBackends(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"docker", "daytona", "sandbox", "host", "firecracker"} {
		cfg := jobdir.NewConfig(time.Unix(0, 0).UTC())
		cfg.Environment.SetBackend(name)
		data := cfg.AppendJSON(nil, func(string) (string, bool) { return "", false })
		back, _, err := jobdir.ParseConfig(data, jobdir.JSON, time.Unix(0, 0).UTC())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, ok := back.Environment.Backend(); !ok || got != name {
			t.Errorf("%s is read as %q, %t", name, got, ok)
		}
	}
	python := "pkg.module:Environment"
	if _, ok := (jobdir.EnvironmentConfig{ImportPath: &python}).Backend(); ok {
		t.Error("Python code counts as a backend")
	}
}
