package jobdir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/jobdir"
)

func TestReadNotes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := jobdir.ReadNotes(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without notes: %v", err)
	}
	written := jobdir.Notes{Schema: jobdir.NotesSchema, Attempt: 2, Backend: "fake"}
	text, err := written.AppendJSON(nil)
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, jobdir.NotesFile), text, 0o644)); err != nil {
		t.Fatal(err)
	}
	if n, err := jobdir.ReadNotes(dir); err != nil || n.Attempt != 2 || n.Backend != "fake" {
		t.Errorf("got %+v, %v", n, err)
	}
}

func TestReadNotesRefuses(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside.json")
	good := `{"schema": "proctor-trial-v1", "attempt": 1}`
	if err := os.WriteFile(outside, []byte(good), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content, link, says string
	}{
		"another schema": {content: `{"schema": "proctor-trial-v9"}`, says: `the schema "proctor-trial-v9", want "proctor-trial-v1"`},
		"no object":      {content: `[]`, says: "cannot unmarshal array"},
		"too long":       {content: good + strings.Repeat(" ", 16<<20), says: "more than 16777216 bytes"},
		"a link out":     {link: outside, says: "leads out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), jobdir.NotesFile)
			var err error
			if c.link != "" {
				err = os.Symlink(c.link, file)
			} else {
				err = os.WriteFile(file, []byte(c.content), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			n, err := jobdir.ReadNotes(filepath.Dir(file))
			if err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("got %+v, %v, want %q", n, err, c.says)
			}
		})
	}
}
