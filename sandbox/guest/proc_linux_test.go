package guest

import (
	"os"
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestScanFindsThisProcess(t *testing.T) {
	t.Parallel()
	p, err := openProc()
	if err != nil {
		t.Fatal(err)
	}
	now, err := p.scan()
	if err != nil {
		t.Fatal(err)
	}
	for _, ps := range now.procs {
		if ps.pid == os.Getpid() {
			if ps.ppid != os.Getppid() || ps.dead() {
				t.Errorf("got %+v", ps)
			}
			return
		}
	}
	t.Error("the scan misses this process")
}

// TestProof: two lists of processes prove something only if nothing happened from
// the first to the second.
func TestProof(t *testing.T) {
	t.Parallel()
	alive, spared, zombie := process{pid: 7, start: 3, state: 'S'}, process{pid: 2, start: 2, state: 'S'}, process{pid: 7, start: 3, state: 'Z'}
	again := process{pid: 7, start: 4, state: 'S'}
	of := func(last int, procs ...process) census { return census{procs: procs, last: last} }
	missed := of(9, spared)
	missed.missed = true
	for name, c := range map[string]struct {
		scans []census
		want  bool
	}{
		"nothing happened":             {[]census{of(9, spared), of(9, spared)}, true},
		"in the order of the kernel":   {[]census{of(9, spared, alive), of(9, alive, spared)}, true},
		"the kernel does not tell":     {[]census{of(0, spared), of(0, spared)}, true},
		"lists in pieces":              {[]census{of(0, spared), {procs: []process{spared}, pieces: true}, of(0, spared)}, false},
		"pieces where it tells":        {[]census{of(9, spared), {procs: []process{spared}, pieces: true, last: 9}}, true},
		"one list":                     {[]census{of(9, spared)}, false},
		"births while a list was made": {[]census{of(-1, spared), of(-1, spared), of(-1, spared), of(-1, spared), of(-1, spared)}, false},
		"births between the lists":     {[]census{of(9, spared), of(10, spared), of(11, spared), of(12, spared)}, false},
		"one ended unseen":             {[]census{of(9, spared), missed, missed, missed}, false},
		"one ended between the lists":  {[]census{of(9, spared, alive), of(9, spared)}, false},
		"one ended, and waits":         {[]census{of(9, spared, alive), of(9, spared, zombie)}, false},
		"one came in the place of one": {[]census{of(0, spared, alive), of(0, spared, again)}, false},
		"one came that was not forked": {[]census{of(9, spared), of(9, spared, alive)}, false},
		"quiet in the end":             {[]census{of(9, spared), of(-1, spared), of(12, spared), of(12, spared)}, true},
		"another kernel, one came":     {[]census{of(0, spared), of(0, spared, alive), of(0, spared)}, false},
		"dead in both":                 {[]census{of(9, zombie), of(9, zombie)}, true},
	} {
		var sure certainty
		got := false
		for _, scan := range c.scans {
			got = sure.gone(0, scan)
		}
		if got != c.want {
			t.Errorf("%s: proven %t, want %t", name, got, c.want)
		}
	}
	var sure certainty
	if sure.gone(0, of(9)) || sure.gone(1, of(9)) || sure.gone(0, of(9)) || !sure.gone(0, of(9)) {
		t.Error("an empty list from before a process was seen counts")
	}
}

func TestDeadAndOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p    process
		want bool
	}{
		{process{state: 'Z', threads: 1}, true}, {process{state: 'Z'}, true},
		{process{state: 'Z', threads: 2}, false}, // the leader has exited before a thread
		{process{state: 'X'}, true}, {process{state: 'D', threads: 1}, false}, {process{state: 'T', threads: 1}, false},
	} {
		if got := c.p.dead(); got != c.want {
			t.Errorf("%+v: dead %t, want %t", c.p, got, c.want)
		}
	}
	at := key{pid: 10, start: 100}
	for p, want := range map[process]bool{
		{pid: 10, start: 100}: true, {pid: 11, start: 100}: true, {pid: 9, start: 100}: false,
		{pid: 5, start: 101}: true, {pid: 50, start: 99}: false,
	} {
		if got := p.bornSince(at); got != want {
			t.Errorf("%+v born since %+v: got %t, want %t", p, at, got, want)
		}
	}
}

// tree is a supervisor 1 with two commands under way, 10 (call 1) and 20
// (call 2), an older daemon 5 with a worker, and orphans of several kinds.
func tree() (*server, []process) {
	s := &server{self: 1, init: true, calls: map[uint32]*service{}}
	for id, root := range map[uint32]key{1: {10, 100}, 2: {20, 110}} {
		c := &service{id: id}
		c.exec = &execution{call: c, root: root, started: true}
		s.calls[id] = c
	}
	return s, []process{
		{pid: 1, start: 1, state: 'S'},
		{pid: 5, ppid: 1, sid: 5, pgid: 5, start: 50, state: 'S'},
		{pid: 40, ppid: 5, sid: 5, pgid: 5, start: 140, state: 'S'}, // the daemon's new worker
		{pid: 10, ppid: 1, sid: 10, pgid: 10, start: 100, state: 'S'},
		{pid: 11, ppid: 10, sid: 10, pgid: 10, start: 101, state: 'S'},
		{pid: 12, ppid: 1, sid: 10, pgid: 12, start: 120, state: 'S'},                   // orphan in the session of 1
		{pid: 13, ppid: 1, sid: 13, pgid: 13, start: 130, state: 'S', rss: brandOf(1)},  // daemon of 1
		{pid: 14, ppid: 1, sid: 14, pgid: 14, start: 131, state: 'S'},                   // nobody's
		{pid: 15, ppid: 14, sid: 14, pgid: 14, start: 132, state: 'Z', threads: 1},      // dead
		{pid: 20, ppid: 1, sid: 20, pgid: 20, start: 110, state: 'S', rss: brandOf(2)},  //
		{pid: 23, ppid: 1, sid: 23, pgid: 23, start: 133, state: 'S', rss: brandOf(2)},  // daemon of 2
		{pid: 24, ppid: 23, sid: 23, pgid: 23, start: 134, state: 'S', rss: brandOf(2)}, // its child
		{pid: 25, ppid: 11, sid: 25, pgid: 25, start: 135, state: 'S', rss: brandOf(2)}, // claims 2, descends from 1
		{pid: 26, ppid: 1, sid: 26, pgid: 26, start: 60, state: 'S', rss: 1<<64 - 1},    // older orphan
		{pid: 27, ppid: 999, sid: 27, pgid: 27, start: 136, state: 'S', rss: 1<<64 - 1}, // its parent is just gone
		{pid: 28, ppid: 0, sid: 0, pgid: 0, start: 137, state: 'S', rss: 1<<64 - 1},     // entered from outside
		{pid: 29, ppid: 28, sid: 0, pgid: 0, start: 138, state: 'S', rss: brandOf(3)},   // a brand of no call
		{pid: 30, ppid: 1, sid: 30, pgid: 30, start: 90, state: 'S', rss: brandOf(1)},   // older, a brand of 1
		{pid: 31, ppid: 31, sid: 31, pgid: 31, start: 139, state: 'S', rss: 1<<64 - 1},  // its own parent
		{pid: 32, ppid: 20, sid: 20, pgid: 20, start: 141, state: 'Z', threads: 2},      // a leader that left threads
		{pid: 33, ppid: 1, sid: 33, pgid: 33, start: 100, state: 'S', rss: 1<<64 - 1},   // same tick, younger
		{pid: 9, ppid: 1, sid: 9, pgid: 9, start: 100, state: 'S', rss: 1<<64 - 1},      // same tick, older
	}
}

func TestFamily(t *testing.T) {
	t.Parallel()
	s, procs := tree()
	for id, want := range map[uint32][]int{
		1: {10, 11, 12, 13, 14, 25, 27, 28, 29, 30, 31, 33},
		2: {14, 20, 23, 24, 27, 28, 29, 31, 32},
	} {
		if got := pids(s.family(s.calls[id].exec)(procs)); !reflect.DeepEqual(got, want) {
			t.Errorf("family of %d: got %v, want %v", id, got, want)
		}
	}
	delete(s.calls, 2) // 2 has ended: what it left is fair game for 1
	want := []int{10, 11, 12, 13, 14, 20, 23, 24, 25, 27, 28, 29, 30, 31, 32, 33}
	if got := pids(s.family(s.calls[1].exec)(procs)); !reflect.DeepEqual(got, want) {
		t.Errorf("family of 1 alone: got %v, want %v", got, want)
	}
}

func TestOursWithoutANamespace(t *testing.T) {
	t.Parallel()
	s := &server{self: 7}
	procs := []process{
		{pid: 1}, {pid: 7, ppid: 1}, {pid: 8, ppid: 7}, {pid: 9, ppid: 8}, {pid: 10, ppid: 1}, {pid: 11, ppid: 999},
		{pid: 12, ppid: 7, state: 'Z', threads: 1},
	}
	if got, want := pids(s.ours(procs)), []int{8, 9}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWholeGroups(t *testing.T) {
	t.Parallel()
	procs := []process{{pid: 2, pgid: 2}, {pid: 3, pgid: 2}, {pid: 4, pgid: 4}, {pid: 5, pgid: 1}, {pid: 6, pgid: 0}}
	if got, want := wholeGroups(procs, procs[1:]), []int{4}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func pids(procs []process) []int {
	out := []int{}
	for _, p := range procs {
		out = append(out, p.pid)
	}
	slices.Sort(out)
	return out
}

// TestListsInOneStep: a list that was too long for one step is asked for in one the next
// time, and every list is whole.
func TestListsInOneStep(t *testing.T) {
	t.Parallel()
	p, err := openProc()
	if err != nil {
		t.Fatal(err)
	}
	p.room.Store(256)
	for range 20 {
		names, pieces, err := p.names()
		if err != nil || !slices.Contains(names, "self") || !slices.Contains(names, "uptime") {
			t.Fatalf("%d names, %v", len(names), err)
		}
		if !pieces {
			return
		}
	}
	t.Errorf("after 20 lists with room for %d bytes they still come in pieces", p.room.Load())
}

// TestScanUntil: who may look no longer has what was looked at.
func TestScanUntil(t *testing.T) {
	t.Parallel()
	p, err := openProc()
	if err != nil {
		t.Fatal(err)
	}
	enough := make(chan time.Time)
	close(enough)
	for _, c := range []struct {
		until <-chan time.Time
		all   bool
	}{{nil, true}, {make(chan time.Time), true}, {enough, false}} {
		now, all, err := p.scanUntil(c.until)
		if err != nil || all != c.all || len(now.procs) > 0 != c.all {
			t.Errorf("got %d processes, all %t, %v, want all %t", len(now.procs), all, err, c.all)
		}
	}
}
