package outcome_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/value"
)

func TestRewardsOutcomeVectors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	vectors.Each(t, "rewards/outcome.jsonl", func(t *testing.T, c *value.Object) {
		path := filepath.Join(dir, vectors.Str(c, "id")+".json")
		place(t, path, c)
		line, err := outcome.Read(path).Outcome.Line()
		want := vectors.Object(c, "want")
		if want.Has("crash") {
			raised(t, err, vectors.Str(want, "crash"), "")
			return
		}
		if err != nil || line != vectors.Str(want, "stdout") {
			t.Errorf("got %s, %v\nwant %s", line, err, vectors.Str(want, "stdout"))
		}
	})
}

// place puts what a case describes at a path.
func place(t *testing.T, path string, c *value.Object) {
	t.Helper()
	var err error
	switch kind := vectors.Str(c, "kind"); kind {
	case "text":
		err = os.WriteFile(path, []byte(vectors.Str(c, "text")), 0o600)
	case "b64":
		var data []byte
		data, err = base64.StdEncoding.DecodeString(vectors.Str(c, "b64"))
		if err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
	case "missing":
	case "dir":
		err = os.Mkdir(path, 0o700)
	case "dangling_symlink":
		err = os.Symlink(path+".nowhere", path)
	case "symlink":
		if err = os.WriteFile(path+".target", []byte(vectors.Str(c, "text")), 0o600); err == nil {
			err = os.Symlink(path+".target", path)
		}
	default:
		t.Fatalf("no kind %q", kind)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestReadAbsent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "no", "where"), filepath.Join(file, "below")} {
		if got := outcome.Read(path); got.Outcome.Reason != outcome.ResultMissing || got.Err == nil {
			t.Errorf("%s: %+v", path, got)
		}
	}
}
