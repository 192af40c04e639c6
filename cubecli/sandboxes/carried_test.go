package sandboxes

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/proctor-run/proctor/sandbox/oci"
)

// carrying returns what a program carries that has these programs in itself.
func carrying(t *testing.T, programs map[string]string) fstest.MapFS {
	t.Helper()
	all := fstest.MapFS{}
	for name, content := range programs {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		all[name+".gz"] = &fstest.MapFile{Data: packed.Bytes()}
		all[name+".sha256"] = &fstest.MapFile{Data: fmt.Appendf(nil, "%x\n", sha256.Sum256([]byte(content)))}
	}
	return all
}

// holding returns the files below a directory, by their base names.
func holding(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		found[d.Name()] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestCarried: what a program carries is unpacked once, to be executed, unless it lies
// beside the program.
func TestCarried(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	self := filepath.Join(dir, "proctor")
	o := Options{Environ: []string{}, Helpers: carrying(t, map[string]string{oci.GuestArg0: "a guest", runscName: "a kernel"})}
	path, err := packaged(o, self, cache, oci.GuestArg0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o100 == 0 || filepath.Base(path) != oci.GuestArg0 {
		t.Errorf("%s: %v, %v", path, info, err)
	}
	if got := holding(t, cache); len(got) != 1 || got[oci.GuestArg0] != "a guest" {
		t.Errorf("the cache holds %q", got)
	}
	broken := o
	broken.Helpers = fstest.MapFS{oci.GuestArg0 + ".gz": {Data: []byte("not read")}, oci.GuestArg0 + ".sha256": o.Helpers.(fstest.MapFS)[oci.GuestArg0+".sha256"]}
	if again, err := packaged(broken, self, cache, oci.GuestArg0); again != path || err != nil {
		t.Errorf("a second time: %q, %v", again, err)
	}
	beside := filepath.Join(dir, oci.GuestArg0)
	if err := os.WriteFile(beside, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := packaged(o, self, cache, oci.GuestArg0); got != beside || err != nil {
		t.Errorf("one beside the program: %q, %v", got, err)
	}
	if got, err := packaged(o, self, cache, foreignGuest("arm64")); got != "" || err != nil {
		t.Errorf("one that is not carried: %q, %v", got, err)
	}
}

// TestCarriedIsWhole: nothing is left in the cache of what is not what was packed.
func TestCarriedIsWhole(t *testing.T) {
	t.Parallel()
	good := carrying(t, map[string]string{runscName: "a kernel", "other": "another kernel"})
	cut := good[runscName+".gz"].Data
	for name, c := range map[string]struct {
		packed, digest []byte
		want           string
	}{
		"another program": {good["other.gz"].Data, good[runscName+".sha256"].Data, "another digest"},
		"cut off":         {cut[:len(cut)-4], good[runscName+".sha256"].Data, "unexpected EOF"},
		"not compressed":  {[]byte("a kernel"), good[runscName+".sha256"].Data, "decompressing"},
		"no digest":       {cut, []byte("../../elsewhere"), "proctor-runsc.sha256 is no digest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cache := t.TempDir()
			o := Options{Environ: []string{}, Helpers: fstest.MapFS{runscName + ".gz": {Data: c.packed}, runscName + ".sha256": {Data: c.digest}}}
			path, err := packaged(o, filepath.Join(t.TempDir(), "proctor"), cache, runscName)
			if path != "" || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, %v, want an error with %q", path, err, c.want)
			}
			if got := holding(t, cache); len(got) > 0 {
				t.Errorf("the cache holds %q", got)
			}
		})
	}
}

// TestCarriedForEngines: an engine on another processor gets the supervisor for that.
func TestCarriedForEngines(t *testing.T) {
	t.Parallel()
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	o := Options{
		Environ: []string{"PROCTOR_CACHE_DIR=" + t.TempDir(), "PROCTOR_STATE_DIR=" + t.TempDir()},
		Helpers: carrying(t, map[string]string{foreignGuest(other): "a guest"}),
	}
	path, err := dockerGuest(o)(t.Context(), other)
	if err != nil || filepath.Base(path) != foreignGuest(other) {
		t.Errorf("got %q, %v", path, err)
	}
	if _, err := dockerGuest(o)(t.Context(), "s390x"); err == nil || !strings.Contains(err.Error(), foreignGuest("s390x")) {
		t.Errorf("for a processor that there is nothing for: %v", err)
	}
}
