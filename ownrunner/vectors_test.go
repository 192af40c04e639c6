package ownrunner_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/ownrunner"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// ops maps the operations of a vector file to their checks.
type ops map[string]func(t *testing.T, c *value.Object)

// eachCase runs the check of every line of a vector file.
func eachCase(t *testing.T, file string, checks ops) {
	t.Helper()
	vectors.Each(t, "outcome/"+file, func(t *testing.T, c *value.Object) {
		check := checks[vectors.Str(c, "op")]
		if check == nil {
			t.Fatalf("no op %q", vectors.Str(c, "op"))
		}
		check(t, c)
	})
}

func optional(o *value.Object, key string) *string {
	s, ok := vectors.Get(o, key).(value.Str)
	if !ok {
		return nil
	}
	text := string(s)
	return &text
}

func integerOf(v value.Value) int64 {
	n, _ := v.(value.Int)
	i, _ := n.Int64()
	return i
}

func floatOf(v value.Value) float64 {
	x, ok := v.(value.Number)
	if !ok {
		return 0
	}
	f, _ := value.ToFloat(x)
	return float64(f)
}

func optionalInt(v value.Value) *int {
	if value.IsNull(v) {
		return nil
	}
	n := int(integerOf(v))
	return &n
}

func texts(v value.Value) []string {
	var out []string
	l, _ := v.(value.List)
	for _, item := range l {
		out = append(out, string(item.(value.Str)))
	}
	return out
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestLayoutVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "own_layout.jsonl", ops{
		"trial_files": checkTrialFiles,
		"trial_name": func(t *testing.T, c *value.Object) {
			equal(t, "name", ownrunner.TrialName(vectors.Str(c, "task"), int(integerOf(vectors.Get(c, "attempt")))), vectors.Str(c, "name"))
		},
		"plan": func(t *testing.T, c *value.Object) {
			got := value.List{}
			for _, p := range ownrunner.PlanTrials(texts(vectors.Get(c, "tasks")), int(integerOf(vectors.Get(c, "n_attempts")))) {
				got = append(got, value.List{value.Str(p.Task), value.NewInt(int64(p.Attempt)), value.Str(p.TrialName)})
			}
			equal(t, "plan", value.Repr(got), value.Repr(vectors.Get(c, "plan")))
		},
		"lock": func(t *testing.T, c *value.Object) {
			in := vectors.Object(c, "config")
			l := ownrunner.Lock{
				AgentName: vectors.Str(in, "agent_name"), ModelName: optional(in, "model_name"),
				MaxRetries: int(integerOf(vectors.Get(in, "max_retries"))), Attempts: int(integerOf(vectors.Get(in, "n_attempts"))),
			}
			equal(t, "lock", string(l.JSON()), vectors.Str(c, "lock_json"))
		},
	})
}

func checkTrialFiles(t *testing.T, c *value.Object) {
	trial := trialOf(t, vectors.Object(c, "trial"))
	result, err := trial.ResultJSON()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "result.json", string(result), vectors.Str(c, "result_json"))
	log, err := trial.Log()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "trial.log", string(log), vectors.Str(c, "trial_log"))

	record := outcome.ReadTrial(result, "", "")
	if record.Name != trial.TrialName || string(record.Status) != string(trial.Status) || record.Reason != string(trial.Reason) {
		t.Errorf("the record comes back as %+v", record)
	}
}

func trialOf(t *testing.T, in *value.Object) ownrunner.Trial {
	t.Helper()
	trial := ownrunner.Trial{
		TaskName: vectors.Str(in, "task_name"), TrialName: vectors.Str(in, "trial_name"),
		Status: outcome.Status(vectors.Str(in, "status")), Errored: vectors.Bool(in, "errored"),
		Reason: outcome.Code(vectors.Str(in, "reason_code")), AgentName: vectors.Str(in, "agent_name"),
		ModelName: optional(in, "model_name"), Source: optional(in, "source"),
		VerifierExit: optionalInt(vectors.Get(in, "verifier_return_code")),
	}
	if rewards := vectors.Object(in, "rewards"); rewards != nil {
		trial.Rewards = &reward.Rewards{}
		for name, v := range rewards.All() {
			trial.Rewards.Set(name, v.(value.Number))
		}
	}
	return trial
}

func TestIsolationVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "isolation.jsonl", ops{
		"sanitize_image": func(t *testing.T, c *value.Object) {
			equal(t, "tag", ownrunner.ImageTag(vectors.Str(c, "in")), vectors.Str(c, "out"))
		},
		"run_argv": checkRunArgs,
		"socket_mounts": func(t *testing.T, c *value.Object) {
			got, want := ownrunner.ExposedSockets(texts(vectors.Get(c, "argv"))), texts(vectors.Get(c, "exposed"))
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		},
		"docker_host": func(t *testing.T, c *value.Object) {
			got, err := ownrunner.EngineAddress(vectors.Str(vectors.Object(c, "env"), "DOCKER_HOST"))
			if want := vectors.Str(c, "error"); want != "" {
				var typed interface{ ErrorType() string }
				if !errors.As(err, &typed) || typed.ErrorType() != want {
					t.Errorf("got error %v, want %s", err, want)
				}
				return
			}
			if err != nil || got != vectors.Str(c, "out") {
				t.Errorf("got %q, %v, want %q", got, err, vectors.Str(c, "out"))
			}
		},
		"secret_name": func(t *testing.T, c *value.Object) {
			equal(t, "secret", ownrunner.IsSecretName(vectors.Str(c, "name")), vectors.Bool(c, "secret"))
			equal(t, "disallowed", ownrunner.IsForbiddenName(vectors.Str(c, "name")), vectors.Bool(c, "disallowed"))
		},
		"filter_env":  checkAgentEnv,
		"redact":      checkRedact,
		"concurrency": checkConcurrency,
		"bridge": func(t *testing.T, c *value.Object) {
			equal(t, "endpoint", ownrunner.BridgeFailed(vectors.Str(c, "text")), vectors.Bool(c, "endpoint"))
			equal(t, "network", ownrunner.NetworkFailed(vectors.Str(c, "text")), vectors.Bool(c, "network"))
		},
		"guest_fail": func(t *testing.T, c *value.Object) {
			equal(t, "line", ownrunner.FailureMarker(vectors.Str(c, "stage"), vectors.Str(c, "class"), vectors.Str(c, "detail")), vectors.Str(c, "line"))
		},
	})
}

func checkRunArgs(t *testing.T, c *value.Object) {
	container := ownrunner.Container{
		Engine: vectors.Str(c, "docker"), Name: vectors.Str(c, "name"), Workdir: vectors.Str(c, "workdir"), Image: vectors.Str(c, "image"),
		MemoryMiB: optionalInt(vectors.Get(c, "memory_mb")), AllowInternet: vectors.Bool(c, "allow_internet"),
	}
	if v := vectors.Get(c, "cpus"); !value.IsNull(v) {
		f := floatOf(v)
		container.CPUs = &f
	}
	for _, m := range vectors.Get(c, "readonly_mounts").(value.List) {
		container.ReadOnlyMounts = append(container.ReadOnlyMounts, [2]string(texts(m)))
	}
	if got, want := container.RunArgs(), texts(vectors.Get(c, "argv")); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func checkAgentEnv(t *testing.T, c *value.Object) {
	env := map[string]string{}
	for name, v := range vectors.Object(c, "env").All() {
		env[name] = string(v.(value.Str))
	}
	got := ownrunner.AgentEnv(env)
	equal(t, "number of variables", len(got), vectors.Object(c, "out").Len())
	for name, v := range vectors.Object(c, "out").All() {
		equal(t, name, got[name], string(v.(value.Str)))
	}
}

// checkRedact takes no text for the empty one, which it is in Go.
func checkRedact(t *testing.T, c *value.Object) {
	got := ownrunner.Redact(vectors.Str(c, "text"), vectors.Str(c, "token"), texts(vectors.Get(c, "values")))
	equal(t, "text", got, vectors.Str(c, "out"))
}

func checkConcurrency(t *testing.T, c *value.Object) {
	var tasks []ownrunner.Cost
	for _, v := range vectors.Get(c, "resources").(value.List) {
		pair := v.(value.List)
		tasks = append(tasks, ownrunner.Cost{CPUs: floatOf(pair[0]), MemoryMiB: integerOf(pair[1])})
	}
	m := ownrunner.Machine{CPUs: int(integerOf(vectors.Get(c, "nproc"))), TotalKiB: integerOf(vectors.Get(c, "mem_total_kib"))}
	equal(t, "trials", int64(ownrunner.Concurrency(tasks, m, optionalInt(vectors.Get(c, "cap")))), integerOf(vectors.Get(c, "out")))
}
