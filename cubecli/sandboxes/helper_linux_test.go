package sandboxes

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Of several that need the program one builds it, and the others take it.
func TestBuildOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "key", "proctor")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	builder, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = builder.Close() }()
	if err := unix.Flock(int(builder.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	// Without an environment go builds nothing: who does not wait fails.
	o := Options{Environ: []string{}, Notice: func(string) {}}
	var waiting sync.WaitGroup
	for range 4 {
		waiting.Go(func() {
			if err := smallGuest.buildOnce(t.Context(), o, path); err != nil {
				t.Error(err)
			}
		})
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := smallGuest.buildOnce(gone, o, path); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("waiting without a context: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := builder.Close(); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
}

// TestIsSourceOf: a helper is built of a module only where the running program
// was built of it, also when its paths were trimmed.
func TestIsSourceOf(t *testing.T) {
	t.Parallel()
	const inModule = "/cubecli/sandboxes/helper_linux.go"
	for _, c := range []struct {
		file, name, dir string
		want            bool
	}{
		{"/src/proctor" + inModule, modulePath, "/src/proctor", true},
		{"/src/proctor" + inModule, modulePath, "/src/other", false},
		{"/src/proctor" + inModule, modulePath, "", false},
		{modulePath + inModule, modulePath, "/src/proctor", true},
		{modulePath + inModule, modulePath + "@v1.2.3", "/mod/proctor@v1.2.3", false},
		{modulePath + "@v1.2.3" + inModule, modulePath + "@v1.2.3", "/mod/proctor@v1.2.3", true},
		{modulePath + "@v1.2.3" + inModule, modulePath + "@v1.2.30", "/mod/proctor@v1.2.30", false},
		{modulePath + "@v1.2.3" + inModule, modulePath, "/src/proctor", false},
		{modulePath + inModule, modulePath, "", false},
	} {
		if got := isSourceOf(c.file, c.name, c.dir); got != c.want {
			t.Errorf("isSourceOf(%q, %q, %q) = %v", c.file, c.name, c.dir, got)
		}
	}
}
