// Package procfs reads the format of /proc/PID/stat, proc_pid_stat(5). What it
// reads may come out of a sandbox: a process chooses its own name.
package procfs

import (
	"bytes"
	"fmt"
	"iter"
	"strconv"
)

// Stat is what /proc/PID/stat says of a process.
type Stat struct {
	// PID is 0 where gVisor's kernel has already let go of a process that is
	// dead (state X).
	PID int
	// Name of the command. It may hold anything, also blanks, parentheses and
	// newlines: gVisor's kernel does not escape them as Linux does.
	Name string
	// State is a letter, such as R, S, Z or X.
	State byte
	// PPID, PGID and SID are the ids of the parent, the process group and the
	// session.
	PPID, PGID, SID int
	Threads         int
	// Start is in clock ticks since the machine's start. With the PID it names
	// one process for as long as the machine runs.
	Start uint64
	// RSSLimit is the soft limit RLIMIT_RSS, in bytes.
	RSSLimit uint64
}

// Ended reports whether the process has ended, and is there for its parent to take notice
// alone. One whose first thread has ended before others has not.
func (s *Stat) Ended() bool {
	return s.State == 'X' || s.State == 'x' || s.State == 'Z' && s.Threads <= 1
}

// Numbers of fields in the manual page.
const (
	fieldState    = 3 // the first behind the name
	fieldPPID     = 4
	fieldPGID     = 5
	fieldSID      = 6
	fieldThreads  = 20
	fieldStart    = 22
	fieldRSSLimit = 25
)

// ParseStat reads the content of one file. Fields behind those of Stat may be
// missing.
func ParseStat(text []byte) (Stat, error) {
	start, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if start < 0 || end < start {
		return Stat{}, fmt.Errorf("process stat without a command name: %.200q", text)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:start])))
	if err != nil || pid < 0 {
		return Stat{}, fmt.Errorf("process stat without a process id: %.200q", text)
	}
	var fields [fieldRSSLimit + 1][]byte
	n := fieldState
	for field := range bytes.FieldsSeq(text[end+1:]) {
		if n == len(fields) {
			break
		}
		fields[n] = field
		n++
	}
	if n < len(fields) {
		return Stat{}, fmt.Errorf("process stat with %d fields, want %d: %.200q", n-1, fieldRSSLimit, text)
	}
	s := Stat{PID: pid, Name: string(text[start+1 : end]), State: fields[fieldState][0]}
	for _, f := range [...]struct {
		number int
		dst    *int
	}{{fieldPPID, &s.PPID}, {fieldPGID, &s.PGID}, {fieldSID, &s.SID}, {fieldThreads, &s.Threads}} {
		if *f.dst, err = strconv.Atoi(string(fields[f.number])); err != nil {
			return Stat{}, fmt.Errorf("process stat of %d: field %d: %w", pid, f.number, err)
		}
	}
	if s.Start, err = strconv.ParseUint(string(fields[fieldStart]), 10, 64); err != nil {
		return Stat{}, fmt.Errorf("process stat of %d: start time: %w", pid, err)
	}
	if s.RSSLimit, err = strconv.ParseUint(string(fields[fieldRSSLimit]), 10, 64); err != nil {
		return Stat{}, fmt.Errorf("process stat of %d: limit: %w", pid, err)
	}
	return s, nil
}

// maxNameLines bounds the lines of one process: a name has at most 15 bytes,
// see PR_SET_NAME in prctl(2).
const maxNameLines = 16

// All lists the processes of several files one after the other, as cat writes
// them. What is no process, or one
// without an id any more, is left out. A name with newlines neither hides its
// process nor makes up another one.
func All(list []byte) iter.Seq[Stat] {
	return func(yield func(Stat) bool) {
		for len(list) > 0 {
			s, rest, ok := first(list)
			list = rest
			if ok && !yield(s) {
				return
			}
		}
	}
}

// first takes the process, or the line that is none, off the list.
func first(list []byte) (s Stat, rest []byte, ok bool) {
	begin := list[:lineEnd(list)]
	head, _, named := bytes.Cut(begin, []byte("("))
	if _, err := strconv.ParseUint(string(bytes.TrimSpace(head)), 10, 31); !named || err != nil {
		return Stat{}, list[len(begin):], false
	}
	end := 0
	for range maxNameLines {
		end += lineEnd(list[end:])
		if s, err := ParseStat(list[:end]); err == nil {
			return s, list[end:], s.PID > 0
		}
	}
	return Stat{}, list[len(begin):], false
}

// lineEnd is the length of the first line with its newline.
func lineEnd(text []byte) int {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return i + 1
	}
	return len(text)
}
