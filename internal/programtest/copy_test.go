package programtest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/proctor-run/proctor/internal/programtest"
)

func TestMain(m *testing.M) {
	if os.Getenv("PROGRAMTEST_CHILD") != "" {
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestCopyIsExecutableAtOnce: although other goroutines start processes all the
// time.
func TestCopyIsExecutableAtOnce(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := func(program string) error {
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), "PROGRAMTEST_CHILD=1")
		return cmd.Run()
	}
	var others sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = child(self)
				}
			}
		})
	}
	dir := t.TempDir()
	for i := range 30 {
		path := filepath.Join(dir, strconv.Itoa(i)+".exe")
		programtest.Copy(t, self, path)
		if err := child(path); err != nil {
			t.Errorf("copy %d: %v", i, err)
		}
	}
	close(stop)
	others.Wait()
}
