package job

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/proctor-run/proctor/jobdir"
)

// demanding is a job of tasks with these texts of task.toml, twice each.
func demanding(t *testing.T, tomls ...string) *Prepared {
	t.Helper()
	root := t.TempDir()
	p := &Prepared{}
	for i, text := range tomls {
		dir := filepath.Join(root, string(rune('a'+i)))
		for name, content := range map[string]string{"task.toml": text, "instruction.md": "x", "tests/test.sh": ""} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			p.Remaining = append(p.Remaining, len(p.Trials))
			p.Trials = append(p.Trials, jobdir.TrialConfig{Task: jobdir.TaskConfig{Path: &dir}, TimeoutMultiplier: 1})
		}
	}
	return p
}

func TestPreparedCheckLimits(t *testing.T) {
	t.Parallel()
	p := demanding(t, "", "broken", "[agent]\ntimeout_sec = 0\n", "[verifier]\ntimeout_sec = -1\n")
	const want = `task "c": [agent].timeout_sec is 0, which leaves no time: each trial would end at once`
	if err := p.CheckLimits(); err != nil || !slices.Equal(p.Warnings, []string{want + " (and 1 more like it)"}) {
		t.Errorf("beside others: %v, warnings %q", err, p.Warnings)
	}
	all := p.Remaining
	p.Remaining = all[4:6] // those of one task are left
	if err := p.CheckLimits(); err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
	p.Remaining, p.Warnings = all[:4], nil
	if err := p.CheckLimits(); err != nil || p.Warnings != nil {
		t.Errorf("finished trials count: %v, %q", err, p.Warnings)
	}
}

func TestTooManyProcessors(t *testing.T) {
	t.Parallel()
	cpus := func(n string) string { return "[environment]\ncpus = " + n + "\n" }
	const alone = `task "b" asks for 3 processors, and this machine has 2; --override-cpus 2 asks for these alone`
	for _, c := range []struct {
		name   string
		tasks  []string
		change func(*jobdir.EnvironmentConfig)
		want   string
	}{
		{"enough", []string{"", cpus("2")}, nil, ""},
		{"one", []string{"", cpus("3")}, nil, alone},
		{"several", []string{cpus("9999999999999999999999"), cpus("3"), cpus("4")}, nil,
			`task "a" asks for 9999999999999999999999 processors, and this machine has 2 (and 2 more like it); --override-cpus 2 asks for these alone`},
		{"ignored", []string{cpus("3")}, func(e *jobdir.EnvironmentConfig) { e.CPUEnforcementPolicy = "ignore" }, ""},
		{"fewer by override", []string{cpus("3")}, func(e *jobdir.EnvironmentConfig) { e.OverrideCPUs = new(1) }, ""},
		{"more by override", []string{""}, func(e *jobdir.EnvironmentConfig) { e.OverrideCPUs = new(8) },
			`task "a" asks for 8 processors, and this machine has 2; --override-cpus 2 asks for these alone`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := demanding(t, c.tasks...)
			for i := range p.Trials {
				if c.change != nil {
					c.change(&p.Trials[i].Environment)
				}
			}
			if got := p.tooManyProcessors(2); got != c.want {
				t.Errorf("warning is %q, want %q", got, c.want)
			}
		})
	}
}

func TestUnboundStorage(t *testing.T) {
	t.Parallel()
	storage := func(n string) string { return "[environment]\nstorage_mb = " + n + "\n" }
	for _, c := range []struct {
		name     string
		tasks    []string
		override *int
		want     string
	}{
		{"none", []string{"", storage("0"), storage("-1")}, nil, ""},
		{"one", []string{"", storage("10240")}, nil, `task "b" has 10240 MiB of storage (storage_mb)`},
		{"several", []string{storage("1"), storage("2"), storage("3")}, nil, `task "a" has 1 MiB of storage (storage_mb) (and 2 more like it)`},
		{"by override", []string{""}, new(7), `task "a" has 7 MiB of storage (storage_mb)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := demanding(t, c.tasks...)
			for i := range p.Trials {
				p.Trials[i].Environment.OverrideStorageMB = c.override
			}
			if got := p.unboundStorage(); got != c.want {
				t.Errorf("warning is %q, want %q", got, c.want)
			}
		})
	}
}
