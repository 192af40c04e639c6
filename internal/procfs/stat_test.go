package procfs_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/procfs"
)

// rest is what follows the name, up to the last field that is read.
const rest = " S 10 20 30 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 3 0 12345 1000 10 18446744073709551615"

// names that processes may choose.
var names = []string{
	"bash", "a b", "x) Z 1 1 1 (y", "new\nline", "", ")", "(", "(((", ")))", ") S 1 2 3 4 5", "1 (x) S", "\n\n\n", "\x00\xff",
	"\n99 (y", ")\n99 (y", " (\n) ",
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	want := procfs.Stat{PID: 42, State: 'S', PPID: 10, PGID: 20, SID: 30, Threads: 3, Start: 12345, RSSLimit: 1<<64 - 1}
	for _, name := range names {
		for _, end := range []string{"", "\n", " 0 0\n", " more"} {
			want.Name = name
			if got, err := procfs.ParseStat([]byte("42 (" + name + ")" + rest + end)); err != nil || got != want {
				t.Errorf("%q: got %+v, %v; want %+v", name, got, err, want)
			}
		}
	}
	for _, bad := range []string{
		"", "42", "42 (x", "42 )x(" + rest, "x (y)" + rest, "(y)" + rest, "-1 (y)" + rest, "42 (x)", "42 (x) S 1",
		"42 (x) S a" + rest[5:], "42 (x)" + strings.Replace(rest, "12345", "-1", 1), "42 (x)" + strings.Replace(rest, "12345", "1e3", 1),
		"42 (x)" + strings.Replace(rest, "18446744073709551615", "18446744073709551616", 1), "42 (x)" + rest[:strings.LastIndex(rest, " ")],
	} {
		if got, err := procfs.ParseStat([]byte(bad)); err == nil {
			t.Errorf("%q: got %+v, want an error", bad, got)
		}
	}
}

// TestParseStatOfADeadProcess reads what gVisor says of a process that ends
// while its file is read.
func TestParseStatOfADeadProcess(t *testing.T) {
	t.Parallel()
	const text = "0 (bash) X 1 0 0 0 0 0 0 0 0 0 15 1 0 0 20 0 0 0 1403 0 0 4611686018427416576 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
	got, err := procfs.ParseStat([]byte(text))
	want := procfs.Stat{Name: "bash", State: 'X', PPID: 1, Start: 1403, RSSLimit: 4611686018427416576}
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if all := slices.Collect(procfs.All([]byte(text + "42 (x)" + rest))); len(all) != 1 || all[0].PID != 42 {
		t.Errorf("in a list: %+v", all)
	}
}

func TestParseStatOfThisProcess(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Skipf("needs /proc: %v", err)
	}
	got, err := procfs.ParseStat(text)
	if err != nil || got.PID != os.Getpid() || got.PPID != os.Getppid() || got.Start == 0 || got.Threads < 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAll(t *testing.T) {
	t.Parallel()
	var list bytes.Buffer
	for i, name := range names {
		fmt.Fprintf(&list, "%d (%s)%s 0 0\n", i+1, name, rest)
	}
	list.WriteString("garbage\n12 (short) S 1\n\n")
	fmt.Fprintf(&list, "7 (without an end%s7 (last)%s", "\n", rest)
	all := slices.Collect(procfs.All(list.Bytes()))
	if len(all) != len(names)+1 {
		t.Fatalf("got %d processes, want %d: %+v", len(all), len(names)+1, all)
	}
	for i, name := range names {
		if all[i].PID != i+1 || all[i].Name != name {
			t.Errorf("process %d named %q: got %d, %q", i+1, name, all[i].PID, all[i].Name)
		}
	}
	for range procfs.All(list.Bytes()) {
		break // and nothing is called afterwards
	}
}

func FuzzParseStat(f *testing.F) {
	for _, name := range names {
		f.Add([]byte("42 (" + name + ")" + rest + "\n"))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := procfs.ParseStat(text)
		if err != nil {
			return
		}
		again, err := procfs.ParseStat(fmt.Appendf(nil, "%d (%s) %c %d %d %d 0 0 0 0 0 0 0 0 0 0 0 0 0 %d 0 %d 0 0 %d",
			s.PID, s.Name, s.State, s.PPID, s.PGID, s.SID, s.Threads, s.Start, s.RSSLimit))
		if err != nil || again != s {
			t.Errorf("%+v written and read again: %+v, %v", s, again, err)
		}
	})
}

func FuzzAll(f *testing.F) {
	f.Add([]byte("1 (a)"+rest+"\n"), "new\nline")
	f.Add([]byte("garbage\n\n"), ") S 1\n2 (b")
	f.Fuzz(func(t *testing.T, before []byte, name string) {
		for range procfs.All(before) {
		}
		// Whatever its name, a process is found as what it is.
		list := fmt.Appendf(nil, "41 (%s)%s\n42 (z)%s\n", name[:min(len(name), 15)], rest, rest)
		all := slices.Collect(procfs.All(list))
		if len(all) != 2 || all[0].PID != 41 || all[0].Name != name[:min(len(name), 15)] || all[1].PID != 42 {
			t.Errorf("%q: got %+v", list, all)
		}
	})
}

func TestEnded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state   byte
		threads int
		want    bool
	}{{'R', 1, false}, {'S', 4, false}, {'D', 1, false}, {'T', 1, false}, {'Z', 1, true}, {'Z', 0, true}, {'Z', 2, false}, {'X', 1, true}, {'x', 1, true}} {
		if s := (procfs.Stat{State: c.state, Threads: c.threads}); s.Ended() != c.want {
			t.Errorf("state %c with %d threads: ended is %v, want %v", c.state, c.threads, s.Ended(), c.want)
		}
	}
}
