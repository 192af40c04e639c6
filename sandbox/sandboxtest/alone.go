package sandboxtest

import (
	"bytes"
	"flag"
	"os"
	osexec "os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// alone reports whether t is the only test of this process. Where it is not, it
// is run once more in a process where it is, and is over then: it passes only if
// it has passed there.
func alone(t *testing.T) bool {
	t.Helper()
	only := exactly(t.Name())
	if run := flag.Lookup("test.run"); run != nil && run.Value.String() == only {
		return true
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatalf("finding the test program, to run it again: %v", err)
	}
	cmd := osexec.CommandContext(t.Context(), program, againArgs(t, only)...)
	cmd.WaitDelay = limit
	ownGroup(cmd)
	// What ownGroup asks for can concern the thread that starts the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if err != nil || !passed(out, t.Name()) {
		t.Errorf("in a process of its own the test did not pass: %v\n%s", err, out)
	}
	return false
}

// exactly is the pattern of the one test with a name.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// againArgs are the arguments with which the test program runs one test, once.
// The flags of the test program's own are those of this process; of package
// testing's only what tests ask for themselves is passed on.
func againArgs(t *testing.T, only string) []string {
	args := []string{"-test.run=" + only, "-test.count=1", "-test.v"}
	if end, ok := t.Deadline(); ok {
		// It has to say where it hangs before this process does the same.
		args = append(args, "-test.timeout="+max(time.Until(end)*9/10, time.Second).String())
	}
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "test.short" || !strings.HasPrefix(f.Name, "test.") {
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	return append(args, flag.Args()...)
}

// passed reports whether the output of a test program says that a test has
// passed, as opposed to one that was skipped or does not exist.
func passed(out []byte, name string) bool {
	for line := range bytes.Lines(out) {
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte("--- PASS: "+name+" (")) {
			return true
		}
	}
	return false
}
