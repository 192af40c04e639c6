package reward_test

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

func TestParseTextVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "reward_txt.jsonl", func(t *testing.T, c, want *value.Object) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "reward.txt"), decoded(t, c))
		checkRead(t, dir, want)
	})
}

func TestParseJSONVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "reward_json.jsonl", func(t *testing.T, c, want *value.Object) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "reward.json"), decoded(t, c))
		checkRead(t, dir, want)
	})
}

func TestReadVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "reward_files.jsonl", func(t *testing.T, c, want *value.Object) {
		dir := filepath.Join(t.TempDir(), "verifier")
		if vectors.Str(c, "verifier_dir") != "absent" {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for name, f := range vectors.Object(c, "files").All() {
			place(t, filepath.Join(dir, name), f.(*value.Object))
		}
		checkRead(t, dir, want)
	})
}

// place makes one file of a case.
func place(t *testing.T, path string, f *value.Object) {
	t.Helper()
	switch kind := vectors.Str(f, "kind"); kind {
	case "file":
		data, err := base64.StdEncoding.DecodeString(vectors.Str(f, "b64"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, data)
	case "dir":
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range vectors.Int(f, "entries") {
			write(t, filepath.Join(path, strconv.Itoa(i)), nil)
		}
	case "symlink":
		if err := os.Symlink(vectors.Str(f, "target"), path); err != nil {
			t.Skipf("making a link: %v", err)
		}
	case "fifo":
		makePipe(t, path)
	default:
		t.Fatalf("unknown kind of file %q", kind)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func checkRead(t *testing.T, dir string, want *value.Object) {
	t.Helper()
	got, err := reward.Read(dir)
	paths := map[string]string{"{TXT}": filepath.Join(dir, "reward.txt"), "{JSON}": filepath.Join(dir, "reward.json")}
	if checkError(t, want, paths, err) {
		return
	}
	if w := rewards(t, vectors.Get(want, "rewards")); !identical(got.Object(), w.Object()) {
		t.Errorf("got %s, want %s", value.Repr(got.Object()), value.Repr(w.Object()))
	}
	file := &value.Object{}
	file.Set("rewards", got.Object())
	if text := string(value.AppendPydantic(nil, file, 0)); text != vectors.Str(want, "json") {
		t.Errorf("got text %s, want %s", text, vectors.Str(want, "json"))
	}
}

func checkException(t *testing.T, want *value.Object, paths map[string]string, err error) {
	t.Helper()
	typed, ok := errors.AsType[interface {
		error
		ErrorType() string
	}](err)
	if !ok || typed.ErrorType() != vectors.Str(want, "error") {
		t.Fatalf("got error %v, want %s", err, vectors.Str(want, "error"))
	}
	message := vectors.Str(want, "message")
	for placeholder, path := range paths {
		message = strings.ReplaceAll(message, placeholder, path)
	}
	got, _, _ := strings.Cut(err.Error(), "\n")
	if got != message && typed.ErrorType() != "RecursionError" {
		t.Errorf("got message %q, want %q", got, message)
	}
	if want.Has("cause") {
		var cause *value.Error
		if !errors.As(err, &cause) || cause.ErrorType() != vectors.Str(want, "cause") {
			t.Errorf("got cause %v, want %s", cause, vectors.Str(want, "cause"))
		}
	}
	if want.Has("validation_errors") {
		checkProblems(t, vectors.List(want, "validation_errors"), err)
	}
}

func checkProblems(t *testing.T, want value.List, err error) {
	t.Helper()
	var e *reward.Error
	if !errors.As(err, &e) || len(e.Problems) != len(want) || e.Total != len(want) {
		t.Fatalf("got %v, want %d problems", err, len(want))
	}
	for i, p := range e.Problems {
		w := want[i].(*value.Object)
		var loc []string
		for _, part := range vectors.List(w, "loc") {
			loc = append(loc, name(part))
		}
		if p.Type != vectors.Str(w, "type") || strings.Join(p.Loc, "\x00") != strings.Join(loc, "\x00") {
			t.Errorf("problem %d: got %s at %q, want %s at %q", i, p.Type, p.Loc, vectors.Str(w, "type"), loc)
		}
	}
}

func TestAggregateVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "metrics.jsonl", func(t *testing.T, c, want *value.Object) {
		var trials []*reward.Rewards
		for _, v := range vectors.List(c, "rewards") {
			trials = append(trials, rewards(t, v))
		}
		for metric, v := range vectors.Object(want, "results").All() {
			want := v.(*value.Object)
			got, err := reward.Aggregate(reward.Metric(metric), trials)
			if checkError(t, want, nil, err) {
				continue
			}
			if w := rewards(t, vectors.Get(want, "out")).Object(); !identical(got, w) {
				t.Errorf("%s: got %s, want %s", metric, value.Repr(got), value.Repr(w))
			}
			if text := string(value.AppendPydantic(nil, got, 0)); text != vectors.Str(want, "json") {
				t.Errorf("%s: got text %s, want %s", metric, text, vectors.Str(want, "json"))
			}
		}
	})
}

func TestPassAtKVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "pass_at_k.jsonl", func(t *testing.T, c, want *value.Object) {
		switch op := vectors.Str(c, "op"); op {
		case "eligible":
			ks := value.List{}
			for _, k := range reward.KValues(vectors.Int(c, "max_k")) {
				ks = append(ks, value.NewInt(int64(k)))
			}
			if w := vectors.Get(want, "k_values"); value.Repr(ks) != value.Repr(w) {
				t.Errorf("got %s, want %s", value.Repr(ks), value.Repr(w))
			}
		case "task":
			a := reward.Attempts{N: vectors.Int(c, "n"), C: vectors.Int(c, "c")}
			got := value.Float(a.PassAtK(vectors.Int(c, "k")))
			if w := vectors.Number(t, vectors.Get(want, "value")); !same(got, w) {
				t.Errorf("got %v, want %v", got, w)
			}
		case "group":
			checkGroups(t, vectors.List(c, "trials"), vectors.List(want, "groups"))
		default:
			t.Fatalf("unknown operation %q", op)
		}
	})
}

// group is the trials of one agent, model and dataset.
type group struct {
	tasks []string
	byID  map[string]*reward.Attempts
	none  bool
}

// grouped sorts trials into groups as the job does.
func grouped(t *testing.T, trials value.List) (keys []string, groups map[string]*group) {
	groups = map[string]*group{}
	for _, v := range trials {
		c := v.(*value.Object)
		key := "agent"
		if c.Has("agent") {
			key = vectors.Str(c, "agent")
		}
		if m := vectors.Str(c, "model"); m != "" {
			key += "__" + m
		}
		if s := vectors.Str(c, "source"); s != "" {
			key += "__" + s
		} else {
			key += "__adhoc"
		}
		g := groups[key]
		if g == nil {
			g = &group{byID: map[string]*reward.Attempts{}}
			groups[key] = g
			keys = append(keys, key)
		}
		task := vectors.Str(c, "task")
		if g.byID[task] == nil {
			g.byID[task] = &reward.Attempts{}
			g.tasks = append(g.tasks, task)
		}
		var r *reward.Rewards
		if res := result(t, vectors.Get(c, "verifier_result")); res != nil {
			r = res.Rewards
		}
		solved, ok := reward.Solved(r)
		g.none = g.none || !ok
		g.byID[task].N++
		g.byID[task].C += solved
	}
	return keys, groups
}

func checkGroups(t *testing.T, trials, want value.List) {
	t.Helper()
	keys, groups := grouped(t, trials)
	i := 0
	for _, key := range keys {
		g := groups[key]
		if g.none {
			continue
		}
		var tasks []reward.Attempts
		for _, task := range g.tasks {
			tasks = append(tasks, *g.byID[task])
		}
		values := reward.PassAtKOf(tasks)
		if len(values) == 0 {
			continue
		}
		if i == len(want) {
			t.Fatalf("got group %s, want none", key)
		}
		w := want[i].(*value.Object)
		i++
		if key != vectors.Str(w, "evals_key") {
			t.Errorf("got group %s, want %s", key, vectors.Str(w, "evals_key"))
		}
		text := &value.Object{}
		for at, v := range values {
			text.Set(strconv.Itoa(v.K), value.Float(v.Value))
			pair := vectors.List(w, "pass_at_k")[at].(value.List)
			if n := vectors.Number(t, pair[1]); !same(value.Float(v.Value), n) {
				t.Errorf("k = %d: got %v, want %v", v.K, v.Value, n)
			}
		}
		if got := string(value.AppendPydantic(nil, text, 0)); got != vectors.Str(w, "json") {
			t.Errorf("got %s, want %s", got, vectors.Str(w, "json"))
		}
	}
	if i != len(want) {
		t.Errorf("got %d groups, want %d", i, len(want))
	}
}

func TestMultiStepVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "multi_step.jsonl", func(t *testing.T, c, want *value.Object) {
		switch op := vectors.Str(c, "op"); op {
		case "select":
			var steps []*reward.Result
			for _, s := range vectors.List(c, "steps") {
				steps = append(steps, result(t, vectors.Get(s.(*value.Object), "verifier_result")))
			}
			got, err := reward.Combine(reward.Strategy(vectors.Str(c, "strategy")), steps)
			if checkError(t, want, nil, err) {
				return
			}
			w := result(t, vectors.Get(want, "verifier_result"))
			if (got == nil) != (w == nil) || got != nil && !identical(got.Rewards.Object(), w.Rewards.Object()) {
				t.Errorf("got %v, want %v", got, w)
			}
		case "min_reward":
			got := minReward(t, vectors.Get(c, "min_reward")).Failure(rewards(t, vectors.Get(c, "rewards")))
			if got != vectors.Str(want, "failure") {
				t.Errorf("got %q, want %q", got, vectors.Str(want, "failure"))
			}
		case "stop":
			got, _ := reward.Stop(result(t, vectors.Get(c, "verifier_result")), vectors.Bool(c, "exception"),
				minReward(t, vectors.Get(c, "min_reward")), vectors.Bool(c, "verifier_disabled"))
			if got != vectors.Bool(want, "stop") {
				t.Errorf("got %v, want %v", got, vectors.Bool(want, "stop"))
			}
		default:
			t.Fatalf("unknown operation %q", op)
		}
	})
}

func minReward(t *testing.T, v value.Value) reward.MinReward {
	t.Helper()
	threshold := func(name string, v value.Value) reward.Threshold {
		f, err := value.ToFloat(vectors.Number(t, v))
		if err != nil {
			t.Fatal(err)
		}
		return reward.Threshold{Name: name, Value: f}
	}
	var m reward.MinReward
	switch v := v.(type) {
	case *value.Object:
		m = append(m, threshold(reward.Name, v))
	case value.List:
		for _, pair := range v {
			p := pair.(value.List)
			m = append(m, threshold(name(p[0]), p[1]))
		}
	}
	return m
}

func TestStatsVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "reward_stats.jsonl", func(t *testing.T, c, want *value.Object) {
		var stats reward.Stats
		scored := 0
		trials := vectors.List(c, "trials")
		for _, v := range trials {
			trial := v.(*value.Object)
			if r := result(t, vectors.Get(trial, "verifier_result")); r != nil && r.Rewards != nil {
				stats.Add(r.Rewards, vectors.Str(trial, "trial_name"))
				scored++
			}
		}
		if len(trials) == 0 {
			return // there is no group
		}
		if got := string(value.AppendPydantic(nil, stats.Object(), 0)); got != vectors.Str(want, "reward_stats_json") {
			t.Errorf("got %s, want %s", got, vectors.Str(want, "reward_stats_json"))
		}
		if scored != vectors.Int(want, "n_trials") {
			t.Errorf("got %d trials with rewards, want %d", scored, vectors.Int(want, "n_trials"))
		}
	})
}
