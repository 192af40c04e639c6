package ownrunner_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/ownrunner"
)

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestTaskDigest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// As text "a-b/f" comes before "a/f"; name by name it does not.
	for _, name := range []string{"a-b/f", "a/f", "task.toml", ".hidden"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("of "+name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	want := digest(".hidden\x00" + digest("of .hidden") + "\na/f\x00" + digest("of a/f") + "\na-b/f\x00" + digest("of a-b/f") +
		"\ntask.toml\x00" + digest("of task.toml") + "\n")
	if got, err := ownrunner.TaskDigest(dir); err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	if err := os.Symlink("task.toml", filepath.Join(dir, "link")); err != nil {
		t.Skipf("this file system has no links: %v", err)
	}
	if got, err := ownrunner.TaskDigest(dir); err != nil || got != want {
		t.Errorf("with a link: got %s, %v; want %s", got, err, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "a", "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ownrunner.TaskDigest(dir); err != nil || got == want {
		t.Errorf("with a changed file: got %s, %v", got, err)
	}
	if _, err := ownrunner.TaskDigest(filepath.Join(dir, "none")); err == nil {
		t.Error("a task that is not there has a digest")
	}
}

func TestManifest(t *testing.T) {
	t.Parallel()
	one, two := digest("1"), digest("2")
	m := ownrunner.Manifest{"b": two, "a": one}
	again, err := ownrunner.ParseManifest(m.AppendJSON(nil))
	if err != nil || len(again) != 2 || again["a"] != one || again["b"] != two {
		t.Errorf("got %v, %v", again, err)
	}
	for _, tt := range []struct {
		task, digest, problem string
	}{
		{"a", one, ""},
		{"terminal-bench/a", one, ""},
		{"a", two, "is pinned"},
		{"c", one, "not in the manifest"},
		{"", one, "not in the manifest"},
		{"a/", one, "not in the manifest"},
	} {
		err := m.Check(tt.task, tt.digest)
		if (err == nil) != (tt.problem == "") || err != nil && (!errors.Is(err, ownrunner.ErrDigestMismatch) || !strings.Contains(err.Error(), tt.problem)) {
			t.Errorf("%q: got %v, want %q", tt.task, err, tt.problem)
		}
	}
	for text, problem := range map[string]string{
		``: "line 1", `[]`: "object", `{"a": 1}`: `"a"`, `{"a": "x"}`: "64 lower-case", `{"": "` + one + `"}`: "no name",
		`{"a": "` + one + `",` + "\n" + `"a": "` + one + `"}`: `line 2: "a" comes twice`, `{"a": "` + strings.ToUpper(one) + `"}`: "64 lower-case",
		`{} {}`: "follows", `{"a": "` + one + `"`: "line 1", `{"a": {"a": "b"}}`: `"a"`,
	} {
		if m, err := ownrunner.ParseManifest([]byte(text)); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: got %v, %v; want %q", text, m, err, problem)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`{"a": "` + digest("") + `"}`))
	f.Add([]byte(`{"a": "` + digest("") + `", "a": "` + digest("") + `"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ownrunner.ParseManifest(data)
		if err != nil {
			return
		}
		again, err := ownrunner.ParseManifest(m.AppendJSON(nil))
		if err != nil || len(again) != len(m) {
			t.Errorf("%q came back as %v, %v", data, again, err)
		}
		for task, d := range m {
			if err := again.Check(task, d); err != nil {
				t.Error(err)
			}
		}
	})
}
