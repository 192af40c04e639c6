package runtimes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/sandbox/oci/internal/hostfile"
)

// TestFirst: the wait for the pid ends with it, with the runtime, and with
// the context.
func TestFirst(t *testing.T) {
	t.Parallel()
	mine := errors.New("mine")
	given, cancel := context.WithCancelCause(t.Context())
	cancel(mine)
	closed := make(chan struct{})
	close(closed)
	for name, c := range map[string]struct {
		ctx   context.Context
		ended chan struct{}
		file  string // "-" for none
		want  string
	}{
		"the runtime has ended":         {t.Context(), closed, "-", "the runtime has ended"},
		"it has ended and left nothing": {t.Context(), closed, "", "the runtime has ended"},
		"the context has ended":         {given, nil, "-", "mine"},
		"no pid":                        {t.Context(), nil, "x1\n", `"x1"`},
		"not a sandbox's":               {t.Context(), nil, "1", `"1"`},
		"said, and ended":               {t.Context(), closed, fmt.Sprint(os.Getpid()), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &Process{pidFile: filepath.Join(t.TempDir(), filePID), done: c.ended}
			if c.file != "-" {
				if err := os.WriteFile(p.pidFile, []byte(c.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f, err := p.First(c.ctx)
			if f != nil {
				_ = f.Close()
			}
			if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	t.Run("written while it waits", func(t *testing.T) {
		t.Parallel()
		p := &Process{pidFile: filepath.Join(t.TempDir(), filePID)}
		write := time.AfterFunc(50*time.Millisecond, func() {
			if err := os.WriteFile(p.pidFile, []byte(fmt.Sprintln(os.Getpid())), 0o600); err != nil {
				t.Error(err)
			}
		})
		defer write.Stop()
		f, err := p.First(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		if info := hostfile.Small(fmt.Sprintf("/proc/self/fdinfo/%d", f.Fd())); !strings.Contains(info, fmt.Sprintf("Pid:\t%d\n", os.Getpid())) {
			t.Errorf("got %s", info)
		}
	})
}
