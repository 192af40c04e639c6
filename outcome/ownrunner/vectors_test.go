package ownrunner_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/proctor-run/proctor/internal/pyvalue"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/outcome/ownrunner"
	"github.com/proctor-run/proctor/reward"
)

// ops maps the operations of a vector file to their checks.
type ops map[string]func(t *testing.T, c *pyvalue.Object)

// eachCase runs the check of every line of a vector file.
func eachCase(t *testing.T, file string, checks ops) {
	t.Helper()
	cases := 0
	for line := range bytes.Lines(vectors.File(t, "outcome/"+file)) {
		v, err := pyvalue.Decode(line)
		if err != nil {
			t.Fatalf("reading case %d of %s: %v", cases, file, err)
		}
		cases++
		c := v.(*pyvalue.Object)
		t.Run(str(c, "id"), func(t *testing.T) {
			check := checks[str(c, "op")]
			if check == nil {
				t.Fatalf("no op %q", str(c, "op"))
			}
			check(t, c)
		})
	}
	t.Logf("%s: %d cases", file, cases)
}

func get(o *pyvalue.Object, key string) pyvalue.Value {
	v, _ := o.Get(key)
	return v
}

func str(o *pyvalue.Object, key string) string {
	s, _ := get(o, key).(pyvalue.Str)
	return string(s)
}

func optional(o *pyvalue.Object, key string) *string {
	s, ok := get(o, key).(pyvalue.Str)
	if !ok {
		return nil
	}
	text := string(s)
	return &text
}

func object(o *pyvalue.Object, key string) *pyvalue.Object {
	v, _ := get(o, key).(*pyvalue.Object)
	return v
}

func boolean(o *pyvalue.Object, key string) bool {
	b, _ := get(o, key).(pyvalue.Bool)
	return bool(b)
}

func integerOf(v pyvalue.Value) int64 {
	n, _ := v.(pyvalue.Int)
	i, _ := n.Int64()
	return i
}

func floatOf(v pyvalue.Value) float64 {
	x, ok := v.(pyvalue.Number)
	if !ok {
		return 0
	}
	f, _ := pyvalue.ToFloat(x)
	return float64(f)
}

func optionalInt(v pyvalue.Value) *int {
	if pyvalue.IsNull(v) {
		return nil
	}
	n := int(integerOf(v))
	return &n
}

func texts(v pyvalue.Value) []string {
	var out []string
	l, _ := v.(pyvalue.List)
	for _, item := range l {
		out = append(out, string(item.(pyvalue.Str)))
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
		"trial_name": func(t *testing.T, c *pyvalue.Object) {
			equal(t, "name", ownrunner.TrialName(str(c, "task"), int(integerOf(get(c, "attempt")))), str(c, "name"))
		},
		"plan": func(t *testing.T, c *pyvalue.Object) {
			got := pyvalue.List{}
			for _, p := range ownrunner.PlanTrials(texts(get(c, "tasks")), int(integerOf(get(c, "n_attempts")))) {
				got = append(got, pyvalue.List{pyvalue.Str(p.Task), pyvalue.NewInt(int64(p.Attempt)), pyvalue.Str(p.TrialName)})
			}
			equal(t, "plan", pyvalue.Repr(got), pyvalue.Repr(get(c, "plan")))
		},
		"lock": func(t *testing.T, c *pyvalue.Object) {
			in := object(c, "config")
			l := ownrunner.Lock{
				AgentName: str(in, "agent_name"), ModelName: optional(in, "model_name"),
				MaxRetries: int(integerOf(get(in, "max_retries"))), Attempts: int(integerOf(get(in, "n_attempts"))),
			}
			equal(t, "lock", string(l.JSON()), str(c, "lock_json"))
		},
	})
}

func checkTrialFiles(t *testing.T, c *pyvalue.Object) {
	trial := trialOf(t, object(c, "trial"))
	result, err := trial.ResultJSON()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "result.json", string(result), str(c, "result_json"))
	log, err := trial.Log()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "trial.log", string(log), str(c, "trial_log"))

	record := outcome.ReadTrial(result, "", "")
	if record.Name != trial.TrialName || string(record.Status) != string(trial.Status) || record.Reason != string(trial.Reason) {
		t.Errorf("the record comes back as %+v", record)
	}
}

func trialOf(t *testing.T, in *pyvalue.Object) ownrunner.Trial {
	t.Helper()
	trial := ownrunner.Trial{
		TaskName: str(in, "task_name"), TrialName: str(in, "trial_name"),
		Status: outcome.Status(str(in, "status")), Errored: boolean(in, "errored"),
		Reason: outcome.Code(str(in, "reason_code")), AgentName: str(in, "agent_name"),
		ModelName: optional(in, "model_name"), Source: optional(in, "source"),
		VerifierExit: optionalInt(get(in, "verifier_return_code")),
	}
	if rewards := object(in, "rewards"); rewards != nil {
		trial.Rewards = &reward.Rewards{}
		for name, v := range rewards.All() {
			trial.Rewards.Set(name, v.(pyvalue.Number))
		}
	}
	return trial
}

func TestIsolationVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "isolation.jsonl", ops{
		"sanitize_image": func(t *testing.T, c *pyvalue.Object) {
			equal(t, "tag", ownrunner.ImageTag(str(c, "in")), str(c, "out"))
		},
		"run_argv": checkRunArgs,
		"socket_mounts": func(t *testing.T, c *pyvalue.Object) {
			got, want := ownrunner.ExposedSockets(texts(get(c, "argv"))), texts(get(c, "exposed"))
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		},
		"docker_host": func(t *testing.T, c *pyvalue.Object) {
			got, err := ownrunner.EngineAddress(str(object(c, "env"), "DOCKER_HOST"))
			if want := str(c, "error"); want != "" {
				var typed interface{ ErrorType() string }
				if !errors.As(err, &typed) || typed.ErrorType() != want {
					t.Errorf("got error %v, want %s", err, want)
				}
				return
			}
			if err != nil || got != str(c, "out") {
				t.Errorf("got %q, %v, want %q", got, err, str(c, "out"))
			}
		},
		"secret_name": func(t *testing.T, c *pyvalue.Object) {
			equal(t, "secret", ownrunner.IsSecretName(str(c, "name")), boolean(c, "secret"))
			equal(t, "disallowed", ownrunner.IsForbiddenName(str(c, "name")), boolean(c, "disallowed"))
		},
		"filter_env":  checkAgentEnv,
		"redact":      checkRedact,
		"concurrency": checkConcurrency,
		"bridge": func(t *testing.T, c *pyvalue.Object) {
			equal(t, "endpoint", ownrunner.BridgeFailed(str(c, "text")), boolean(c, "endpoint"))
			equal(t, "network", ownrunner.NetworkFailed(str(c, "text")), boolean(c, "network"))
		},
		"guest_fail": func(t *testing.T, c *pyvalue.Object) {
			equal(t, "line", ownrunner.FailureMarker(str(c, "stage"), str(c, "class"), str(c, "detail")), str(c, "line"))
		},
	})
}

func checkRunArgs(t *testing.T, c *pyvalue.Object) {
	container := ownrunner.Container{
		Engine: str(c, "docker"), Name: str(c, "name"), Workdir: str(c, "workdir"), Image: str(c, "image"),
		MemoryMiB: optionalInt(get(c, "memory_mb")), AllowInternet: boolean(c, "allow_internet"),
	}
	if v := get(c, "cpus"); !pyvalue.IsNull(v) {
		f := floatOf(v)
		container.CPUs = &f
	}
	for _, m := range get(c, "readonly_mounts").(pyvalue.List) {
		container.ReadOnlyMounts = append(container.ReadOnlyMounts, [2]string(texts(m)))
	}
	if got, want := container.RunArgs(), texts(get(c, "argv")); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func checkAgentEnv(t *testing.T, c *pyvalue.Object) {
	env := map[string]string{}
	for name, v := range object(c, "env").All() {
		env[name] = string(v.(pyvalue.Str))
	}
	got := ownrunner.AgentEnv(env)
	equal(t, "number of variables", len(got), object(c, "out").Len())
	for name, v := range object(c, "out").All() {
		equal(t, name, got[name], string(v.(pyvalue.Str)))
	}
}

// checkRedact takes no text for the empty one, which it is in Go.
func checkRedact(t *testing.T, c *pyvalue.Object) {
	got := ownrunner.Redact(str(c, "text"), str(c, "token"), texts(get(c, "values")))
	equal(t, "text", got, str(c, "out"))
}

func checkConcurrency(t *testing.T, c *pyvalue.Object) {
	var tasks []ownrunner.Cost
	for _, v := range get(c, "resources").(pyvalue.List) {
		pair := v.(pyvalue.List)
		tasks = append(tasks, ownrunner.Cost{CPUs: floatOf(pair[0]), MemoryMiB: integerOf(pair[1])})
	}
	m := ownrunner.Machine{CPUs: int(integerOf(get(c, "nproc"))), TotalKiB: integerOf(get(c, "mem_total_kib"))}
	equal(t, "trials", int64(ownrunner.Concurrency(tasks, m, optionalInt(get(c, "cap")))), integerOf(get(c, "out")))
}
