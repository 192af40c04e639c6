//go:build unix

package script_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/score/script"
	"github.com/proctor-run/proctor/value"
)

// standIn is a uv that runs the script with the shell.
const standIn = `#!/bin/sh
[ "$1" = run ] || exit 9
shift
exec sh "$@"
`

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWithUV(t *testing.T) {
	bin, tmp := t.TempDir(), t.TempDir()
	write(t, filepath.Join(bin, "uv"), standIn)
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("TMPDIR", tmp)
	trial, err := reward.ParseJSON([]byte(`{"a": 1.5}`), reward.JSONFile)
	if err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, text string) (string, error) {
		path := filepath.Join(t.TempDir(), "metric.sh")
		if text != "" {
			write(t, path, text)
		}
		environ := []string{"PATH=" + os.Getenv("PATH"), "WHO=me"}
		out, err := script.WithUV(ctx, environ)(path)([]*reward.Rewards{trial, nil})
		return value.Repr(out), err
	}

	got, err := run(t.Context(), `printf '{"rewards": "%s", "who": "%s"}' "$(tr -d '"\n' <"$2")" "$WHO" >"$4"`)
	if want := "{'rewards': '{a: 1.5}null', 'who': 'me'}"; err != nil || got != want {
		t.Errorf("the metric is %s, %v, want %s", got, err, want)
	}
	for _, c := range []struct {
		name, text string
		kind       reward.Kind
		message    string
	}{
		{"missing", "", reward.ScriptNotFound, "Script file not found: "},
		{"failing", "echo it broke >&2; exit 3", reward.ScriptFailed, "Failed to compute custom metric: it broke"},
	} {
		_, err := run(t.Context(), c.text)
		if e, ok := errors.AsType[*reward.Error](err); !ok || e.Kind != c.kind || !strings.HasPrefix(e.Message, c.message) {
			t.Errorf("%s: %v, want %s", c.name, err, c.message)
		}
	}
	if _, err := run(t.Context(), "true"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a script that writes nothing: %v", err)
	}
	if _, err := run(t.Context(), `head -c 17000000 /dev/zero >"$4"`); err == nil || !strings.Contains(err.Error(), "reading the output of a metric script") {
		t.Errorf("a script that writes too much: %v", err)
	}
	reason := errors.New("not wanted any more")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := run(ctx, "exec sleep 60"); !errors.Is(err, reason) {
		t.Errorf("with an ended context: %v", err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("scripts left %v, %v", left, err)
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	if _, err := script.Refuse("metric.py")(nil); !errors.Is(err, script.ErrNotRun) || !strings.Contains(err.Error(), "metric.py") {
		t.Errorf("got %v", err)
	}
}
