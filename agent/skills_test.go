package agent_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/vectors"
)

func TestFindSkills(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Name   string
		Files  map[string]string
		Inputs []string
		Skills []struct{ Name, Source, Digest string }

		ErrorType     string `json:"error_type"`
		ErrorContains string `json:"error_contains"`
	}
	if err := json.Unmarshal(vectors.File(t, "skills/resolve.json"), &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFiles(t, dir, c.Files)
			inputs := make([]string, len(c.Inputs))
			for i, in := range c.Inputs {
				inputs[i] = filepath.Join(dir, in)
			}
			skills, err := agent.FindSkills(inputs, "")
			if c.ErrorType != "" {
				typed, ok := errors.AsType[*exception.Error](err)
				if !ok || typed.Type != c.ErrorType || !strings.Contains(strings.ReplaceAll(typed.Message, dir+"/", ""), c.ErrorContains) {
					t.Errorf("got error %v, want %s with %q", err, c.ErrorType, c.ErrorContains)
				}
				return
			}
			if err != nil || len(skills) != len(c.Skills) {
				t.Fatalf("got %v, %v; want %v", skills, err, c.Skills)
			}
			for i, want := range c.Skills {
				got := skills[i]
				digest, err := got.Digest()
				if err != nil || got.Name != want.Name || got.Dir != filepath.Join(dir, want.Source) || digest != want.Digest {
					t.Errorf("got %v %s, %v; want %v", got, digest, err, want)
				}
			}
		})
	}
	t.Logf("%d cases", len(cases))
}

// writeFiles writes files below dir; a name that ends in a slash is a directory.
func writeFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		parent := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			parent = path
		}
		if err := os.MkdirAll(parent, 0o755); err != nil {
			t.Fatal(err)
		}
		if parent == path {
			continue
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSkillsByHomeAndName(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	writeFiles(t, home, map[string]string{"set/a/SKILL.md": "1", "set/a/a-b/x": "2", "set/a/a/x": "3"})
	if err := os.Symlink("nowhere", filepath.Join(home, "set", "a", "dangling")); err != nil {
		t.Fatal(err)
	}
	skills, err := agent.FindSkills([]string{"~/set"}, home)
	if err != nil || len(skills) != 1 || skills[0].Dir != filepath.Join(home, "set", "a") {
		t.Fatalf("got %v, %v", skills, err)
	}
	if _, err := skills[0].Digest(); err != nil {
		t.Error(err)
	}
	if _, err := agent.FindSkills([]string{"~/set"}, ""); err == nil {
		t.Error("without a home directory, ~ was found")
	}
}
