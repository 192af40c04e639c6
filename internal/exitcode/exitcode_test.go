package exitcode_test

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/proctor-run/proctor/internal/exitcode"
)

// TestWithOutput: a failed write is told of once, whatever else there is to say, and
// nothing hides it; a reader that went away is not told of.
func TestWithOutput(t *testing.T) {
	t.Parallel()
	full, gone := fmt.Errorf("write: %w", syscall.ENOSPC), fmt.Errorf("write: %w", syscall.EPIPE)
	const lost = "p: writing the output: write: no space left on device\n"
	for name, tt := range map[string]struct {
		err, failed error
		code        int
		said        string
	}{
		"nothing":               {nil, nil, exitcode.OK, ""},
		"full":                  {nil, full, exitcode.Failed, lost},
		"full, returned":        {fmt.Errorf("printing: %w", full), full, exitcode.Failed, lost},
		"full, trials errored":  {exitcode.Quiet(exitcode.TrialErrors), full, exitcode.Failed, lost},
		"full, threshold":       {&exitcode.Error{Code: exitcode.Threshold, Err: errors.New("missed")}, full, exitcode.Failed, "p: missed\nwriting the output: write: no space left on device\n"},
		"full, usage":           {exitcode.WithHint(exitcode.Usagef("wrong"), "right"), full, exitcode.Usage, "p: wrong\nwriting the output: write: no space left on device\np: right\n"},
		"full, interrupted":     {exitcode.Quiet(exitcode.Interrupted), full, exitcode.Interrupted, lost},
		"closed":                {nil, gone, exitcode.Failed, ""},
		"closed, returned":      {fmt.Errorf("printing: %w", gone), gone, exitcode.Failed, ""},
		"closed, threshold":     {exitcode.Quiet(exitcode.Threshold), gone, exitcode.Threshold, ""},
		"closed, another error": {errors.New("other"), gone, exitcode.Failed, "p: other\n"},
		"another error":         {errors.New("other"), nil, exitcode.Failed, "p: other\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := exitcode.WithOutput(tt.err, tt.failed)
			var said bytes.Buffer
			if err != nil {
				exitcode.Report(&said, "p", err)
			}
			if code := exitcode.Of(err); code != tt.code || said.String() != tt.said {
				t.Errorf("code %d, want %d; said\n%swant\n%s", code, tt.code, said.String(), tt.said)
			}
		})
	}
}
