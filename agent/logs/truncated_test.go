package logs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/internal/bounded"
)

func TestTruncated(t *testing.T) {
	t.Parallel()
	whole := mustRead(t, "pi")
	const record = `{"type":"session","id":"s"}` + "\n"
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"whole", whole, nil},
		{"without the last newline", strings.TrimSuffix(whole, "\n"), nil},
		{"two thirds", whole[:len(whole)*2/3], []string{"the last line of pi.txt is cut off"}},
		{"one byte of the only record", "{", []string{"the last line of pi.txt is cut off"}},
		{"warnings", "(node:1) Warning: x\n" + record + "[1,2]\n{\n  \"a\": 1\n}\n\nKilled", nil},
		{"another kind of file", "{ braces }\n{ more }\n", nil},
		{"a line", record + "{\"type\":\n" + record, []string{"1 line of pi.txt is no JSON"}},
		{"lines", "{x\n" + record + "{\"a\"\n{\"b\n{\"c", []string{"3 lines of pi.txt are no JSON; the last line of pi.txt is cut off"}},
		{"cut by the writer", record + `{"type":"mess` + bounded.CutMark(17) + "{age\"}\n" + record, []string{"17 bytes of pi.txt were cut out when it was written"}},
		{"cut between lines", record + bounded.CutMark(17)[1:] + record, []string{"17 bytes of pi.txt were cut out when it was written"}},
		{"a mark that is none", record + "[proctor: many bytes of output cut here]\n", nil},
		{"a mark in a text", record + `{"type":"x","text":"[proctor: 5 bytes of output cut here]"}` + "\n", nil},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "pi.txt"), c.text)
		got, err := convert("pi", Input{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got.Truncated); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestEveryReaderSaysWhatIsCut cuts the sessions of all agents.
func TestEveryReaderSaysWhatIsCut(t *testing.T) {
	t.Parallel()
	for agent, file := range mainFiles {
		dir := t.TempDir()
		text := mustRead(t, agent)
		write(t, filepath.Join(dir, file), text[:len(text)*9/10])
		got, err := convert(agent, Input{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		want := "the last line of " + file + " is cut off"
		if filepath.Ext(file) == ".json" {
			want = file + " is not a whole JSON document"
		}
		if diff := cmp.Diff([]string{want}, got.Truncated); diff != "" {
			t.Errorf("%s (-want +got):\n%s", agent, diff)
		}
	}
}

// TestTooLarge has files of which not all, or nothing, is read.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "pi.txt")
	write(t, file, mustRead(t, "pi"))
	if err := os.Truncate(file, maxLog+1); err != nil {
		t.Fatal(err)
	}
	got, err := convert("pi", Input{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{fmt.Sprintf("pi.txt is not read: it has more than %d bytes", maxLog)}, got.Truncated); diff != "" || got.Trajectory != nil {
		t.Errorf("%v (-want +got):\n%s", got.Trajectory, diff)
	}
	d := &Dir{path: dir, left: 10}
	if d.Read("pi.txt") != nil || !slices.Equal(d.truncated(), []string{fmt.Sprintf("pi.txt is not read: what is read of the logs would be more than %d bytes", maxLogs)}) {
		t.Errorf("got %q", d.truncated())
	}
}

func TestManyNotes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range maxNotes + 3 {
		write(t, filepath.Join(dir, "sessions", "s", "events", fmt.Sprint(i)+".json"), "{")
	}
	got, err := convert("openhands", Input{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got.Truncated); n != maxNotes+1 || got.Truncated[maxNotes] != "3 more files are not whole" {
		t.Errorf("got %q", got.Truncated)
	}
}
