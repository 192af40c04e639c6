package traces

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/value"
)

// write makes a trial with these files.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

func resultOf(agent string) string {
	return `{"trial_name":"t","config":{"agent":{"name":"` + agent + `"}},"verifier_result":{"rewards":{"reward":1}}}`
}

const trajectory = `{"agent":{"name":"x","version":"1"},"steps":[{"step_id":1,"source":"user","message":"u"},
{"step_id":2,"source":"agent","message":"a","metrics":{"prompt_token_ids":[1,2],"completion_token_ids":[3],"logprobs":[-0.5]}},
{"step_id":3,"source":"agent","message":"b","metrics":{"logprobs":[-1]}}]}`

func TestAgentsWithoutTrajectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{"result.json": resultOf("oracle"), "agent/oracle.txt": "x"})
	err := Read(dir, Options{}, func(Row) error { t.Error("there is a row"); return nil })
	if bad, ok := errors.AsType[*UnsupportedError](err); !ok || bad.Agent != "oracle" {
		t.Errorf("got %v", err)
	}
	// One that somebody made afterwards is exported, and so are agents that Harbor
	// does not know.
	for _, agent := range []string{"pi", "my-own"} {
		write(t, dir, map[string]string{"result.json": resultOf(agent), "agent/trajectory.json": trajectory})
		if rows := read(t, dir, Options{}); len(rows) != 2 {
			t.Errorf("%s: %d rows", agent, len(rows))
		}
	}
}

func TestImagesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"result.json":           resultOf("terminus-2"),
		"agent/trajectory.json": `{"steps":[{"message":[{"type":"image"}]}]}`,
	})
	if err := Read(dir, Options{}, func(Row) error { return nil }); !errors.Is(err, ErrImages) {
		t.Errorf("got %v", err)
	}
}

func TestTokenIDs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{"result.json": resultOf("terminus-2"), "agent/trajectory.json": trajectory})
	rows := read(t, dir, Options{TokenIDs: true, Last: true})
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	row := rows[0].(*value.Object)
	for key, want := range map[string]string{"prompt_token_ids": "[[1, 2], null]", "completion_token_ids": "[[3], null]", "logprobs": "[[-0.5], [-1]]"} {
		v, _ := row.Get(key)
		if got := string(value.AppendDumps(nil, v, value.DumpsOptions{})); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	if read(t, dir, Options{})[0].(*value.Object).Has("logprobs") {
		t.Error("they are there unasked")
	}
	write(t, dir, map[string]string{"agent/trajectory.json": `{"steps":[{"source":"agent","message":"m"}]}`})
	if read(t, dir, Options{TokenIDs: true})[0].(*value.Object).Has("logprobs") {
		t.Error("a row has a column without an entry")
	}
}

// TestHostileFiles has an agent that wants to read the host's files.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	write(t, outside, map[string]string{"secret.json": `{"steps":[{"source":"agent","message":"secret"}]}`})
	chained := func(ref string) string {
		return strings.Replace(trajectory, "{", `{"continued_trajectory_ref":"`+ref+`",`, 1)
	}
	for name, ref := range map[string]string{
		"absolute": filepath.Join(outside, "secret.json"), "parents": "../../../../../../../" + outside + "/secret.json",
		"itself": "trajectory.json", "roundabout": "./x/../trajectory.json",
	} {
		dir := t.TempDir()
		write(t, dir, map[string]string{"result.json": resultOf("terminus-2"), "agent/trajectory.json": chained(ref)})
		if rows := read(t, dir, Options{}); len(rows) != 2 {
			t.Errorf("%s: %d rows", name, len(rows))
		}
	}
	for name, link := range map[string]string{"agent/trajectory.json": filepath.Join(outside, "secret.json"), "agent": outside} {
		dir := t.TempDir()
		write(t, dir, map[string]string{"result.json": resultOf("terminus-2")})
		if name != "agent" {
			write(t, dir, map[string]string{"agent/x": ""})
		}
		write(t, outside, map[string]string{"trajectory.json": trajectory})
		if err := os.Symlink(link, filepath.Join(dir, name)); err != nil {
			t.Skipf("symbolic links cannot be made here: %v", err)
		}
		err := Read(dir, Options{Subagents: true, Instruction: true}, func(r Row) error { t.Errorf("%s: a row %v", name, r); return nil })
		if err == nil {
			t.Errorf("%s: the link is not noticed", name)
		}
	}
}

func TestReadNamesAResultThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const trajectory = `{"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "terminus-2", "version": "1"}, "steps": []}`
	for name, result := range map[string]string{"no JSON": "{", "no UTF-8": "\xff"} {
		dir := filepath.Join(t.TempDir(), "job", "trial")
		write(t, dir, map[string]string{"result.json": result, "agent/trajectory.json": trajectory})
		read := func() error { return Read(dir, Options{Keep: All}, func(Row) error { return nil }) }
		if err := read(); !errors.Is(err, ErrResult) || !strings.Contains(err.Error(), filepath.Join(dir, "result.json")) {
			t.Errorf("%s: got %v, want an error that names the file", name, err)
		}
		write(t, filepath.Dir(dir), map[string]string{"result.json": resultOf("terminus-2")})
		if err := read(); err != nil {
			t.Errorf("%s, beside a job's result: %v", name, err)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"job/b__1/agent/x": "", "job/b__1/attempts/1/agent/x": "", "job/b__1/agent/agent/x": "",
		"job/a__1/steps/s1/agent/x": "", "job/.set-aside/c/agent/x": "", "job/result.json": "{}",
	})
	got, err := Find(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i], _ = filepath.Rel(dir, got[i])
	}
	if diff := cmp.Diff([]string{filepath.FromSlash("job/a__1/steps/s1"), filepath.FromSlash("job/b__1")}, got); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		dir       string
		recursive bool
		want      int
	}{{"job/b__1", false, 1}, {"job/b__1", true, 1}, {"job", false, 0}} {
		if got, err := Find(filepath.Join(dir, c.dir), c.recursive); err != nil || len(got) != c.want {
			t.Errorf("%s: %v, %v", c.dir, got, err)
		}
	}
	if _, err := Find(filepath.Join(dir, "nowhere"), true); err == nil {
		t.Error("a directory that is not there is no error")
	}
}
