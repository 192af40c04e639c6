package guest

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/frames"
)

const (
	// sweeps of killing before everything in the namespace is stopped at
	// once: what flees from a sweep does not flee from that.
	sweepsBeforeFreeze = 8
	// tooLong for looking at all processes: they leave the supervisor so little of the
	// processor that it does nothing but look. Then everything is stopped first.
	tooLong = 250 * time.Millisecond
	// sweepsBeforeProof after which everything is stopped although nothing is
	// seen: others come and go, and keep it from being proven.
	sweepsBeforeProof = 50
	// maxMarks are remembered; the oldest are forgotten.
	maxMarks = 4096
	// quietAfter scans in a row that find nothing there is nobody to wait for
	// any more; that is no proof.
	quietAfter = 3
)

// match picks processes from a scan.
type match func([]process) []process

// mark remembers which processes exist.
func (s *server) mark() reply {
	now, err := s.proc.scan()
	if err != nil {
		return replyOf(err)
	}
	there := make(map[key]bool, len(now.procs))
	for _, p := range now.procs {
		there[p.key()] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastMark++
	// The process id and time tell marks of one supervisor from another's.
	id := fmt.Sprintf("%d.%d.%d", s.self, s.started, s.lastMark)
	s.marks[id] = there
	s.markIDs = append(s.markIDs, id)
	if len(s.markIDs) > maxMarks {
		delete(s.marks, s.markIDs[0])
		s.markIDs = s.markIDs[1:]
	}
	return reply{message: id}
}

// processes sends a list of all processes.
func (s *server) processes(c *service) error {
	now, err := s.proc.scan()
	if err != nil {
		return err
	}
	out := newCallWriter(s, c, frames.MaxData)
	for _, p := range now.procs {
		text := encodeProcess(sandbox.Process{PID: p.pid, PPID: p.ppid, Start: p.start, Dead: p.dead(), Name: p.name})
		if _, err := out.Write(text); err != nil {
			return fmt.Errorf("sending the list of processes: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("sending the list of processes: %w", err)
	}
	return nil
}

// killTree ends everything born since a mark, or whatever there is. What a process from before the
// mark has started stays with it: a service continues forking its workers, and
// as long as it is spared there is no end to them.
func (s *server) killTree(c *service, q killRequest) reply {
	if q.mark == everything {
		return replyOf(s.finish(s.ours, q.grace, c.canceled))
	}
	s.mu.Lock()
	there, ok := s.marks[q.mark]
	s.mu.Unlock()
	if !ok {
		return replyOf(fmt.Errorf("unknown mark %q", q.mark))
	}
	since := func(procs []process) (hit []process) {
		older := s.descends(procs, func(p process) bool { return there[p.key()] })
		for _, p := range s.ours(procs) {
			if !older(p) {
				hit = append(hit, p)
			}
		}
		return hit
	}
	return replyOf(s.finish(since, q.grace, c.canceled))
}

// killExec ends a command that is under way: all that was born since it
// started and belongs to no other command under way. It does not wait.
func (s *server) killExec(c *service, grace time.Duration) {
	e := c.exec
	if e == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.exited || e.killed != nil {
		return
	}
	e.killed = make(chan struct{})
	if !e.started { // spawn sees killed, under the same lock
		close(e.killed)
		return
	}
	go func() { // ended waits for it
		defer close(e.killed)
		e.proof = s.finish(s.family(e), grace, nil)
	}()
}

// family matches what a command is responsible for.
func (s *server) family(e *execution) match {
	return func(procs []process) (hit []process) {
		owner := s.owners(procs)
		s.mu.Lock()
		root := e.root
		s.mu.Unlock()
		older := s.descends(procs, func(p process) bool { return !p.bornSince(root) })
		for _, p := range s.ours(procs) {
			of := owner(p)
			if of == e.call.id || (of == 0 && !older(p)) {
				hit = append(hit, p)
			}
		}
		return hit
	}
}

// owners says which command under way a process belongs to, 0 when to none:
// by descent, else by session, else by brand.
func (s *server) owners(procs []process) func(process) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	roots, brands, sessions := map[key]uint32{}, map[uint64]uint32{}, map[int]uint32{}
	for _, c := range s.calls {
		if c.exec != nil && c.exec.started {
			roots[c.exec.root] = c.id
			sessions[c.exec.root.pid] = c.id
			brands[brandOf(c.id)] = c.id
		}
	}
	var id uint32
	below := s.descends(procs, func(p process) bool {
		id = roots[p.key()]
		return id != 0
	})
	return func(p process) uint32 {
		if below(p) {
			return id
		}
		if id := sessions[p.sid]; id != 0 {
			return id
		}
		return brands[p.rss]
	}
}

// descends reports whether a process or one that it descends from, below the
// supervisor, is what is asked for.
func (s *server) descends(procs []process, is func(process) bool) func(process) bool {
	byPID := make(map[int]process, len(procs))
	for _, p := range procs {
		byPID[p.pid] = p
	}
	return func(p process) bool {
		for steps := 0; steps < len(procs) && p.pid != s.self; steps++ {
			if is(p) {
				return true
			}
			parent, ok := byPID[p.ppid]
			if !ok {
				return false
			}
			p = parent
		}
		return false
	}
}

// ours leaves out the supervisor, the dead and, where it is not process 1,
// what does not descend from it.
func (s *server) ours(procs []process) (out []process) {
	child := s.descends(procs, func(p process) bool { return p.ppid == s.self })
	for _, p := range procs {
		if p.pid != s.self && !p.dead() && (s.init || child(p)) {
			out = append(out, p)
		}
	}
	return out
}

// errNotFirst is the answer where the supervisor is not process 1.
var errNotFirst = errors.New("it cannot be proven that nothing is left: the supervisor is not the first process of a process namespace, " +
	"so that what it does not see need not be there, nor be gone")

// finish ends what m matches: SIGTERM, after grace SIGKILL, and nil only when
// it is proven that nothing is left.
func (s *server) finish(m match, grace time.Duration, canceled <-chan struct{}) error {
	gone, err := s.terminate(m, grace, canceled)
	if !gone && err == nil {
		err = s.kill(m, canceled)
	}
	if err == nil && !s.init {
		err = errNotFirst
	}
	return err
}

// terminate asks to end and waits for it, at most for grace, and not when there
// is nobody to be seen. gone is proven.
func (s *server) terminate(m match, grace time.Duration, canceled <-chan struct{}) (gone bool, err error) {
	asked := map[key]bool{}
	over := time.NewTimer(max(grace, 0))
	defer over.Stop()
	var sure certainty
	for nap := time.Millisecond; ; nap = min(2*nap, 20*time.Millisecond) {
		now, slow, err := s.look()
		if slow {
			err = s.askFrozen(m, now, asked)
		}
		if err != nil {
			return false, err
		}
		if !slow {
			hit := m(now.procs)
			if proven := sure.gone(len(hit), now); proven || sure.quiet() {
				return proven, nil
			}
			ask(hit, asked)
			if len(hit) == 0 {
				nap = time.Millisecond // a moment, then look again
			}
		}
		select {
		case <-over.C:
			return false, nil
		case <-canceled:
			return false, errCanceled
		case <-time.After(nap):
		}
	}
}

// look lists the processes. Slow: some were not looked at, because it takes too long.
func (s *server) look() (now census, slow bool, err error) {
	if !s.init { // it may not stop everything
		now, err = s.proc.scan()
		return now, false, err
	}
	enough := time.NewTimer(tooLong)
	defer enough.Stop()
	now, all, err := s.proc.scanUntil(enough.C)
	return now, !all, err
}

// ask asks those to end that were not asked before.
func ask(hit []process, asked map[key]bool) {
	for _, p := range hit {
		if !asked[p.key()] {
			asked[p.key()] = true
			_ = syscall.Kill(p.pid, syscall.SIGTERM)
			_ = syscall.Kill(p.pid, syscall.SIGCONT) // a stopped one must hear it
		}
	}
}

// askFrozen is ask while everything is stopped.
func (s *server) askFrozen(m match, before census, asked map[key]bool) error {
	return s.frozen(before, func(stay map[key]bool) (census, error) {
		now, err := s.proc.scan()
		if err != nil {
			return now, err
		}
		hit := m(now.procs)
		ask(hit, asked)
		for _, p := range hit {
			delete(stay, p.key())
		}
		return now, nil
	})
}

// kill kills until nothing is left, which is proven where the supervisor is
// process 1; elsewhere it is over when nothing is seen.
func (s *server) kill(m match, canceled <-chan struct{}) error {
	over := time.NewTimer(killLimit)
	defer over.Stop()
	var sure certainty
	for sweep := 0; ; sweep++ {
		now, slow, err := s.look()
		if err != nil {
			return err
		}
		hit, gone := m(now.procs), false
		if slow {
			gone, err = s.killFrozen(m, now)
		} else if gone = sure.gone(len(hit), now) || (!s.init && sure.quiet()); !gone {
			gone, err = s.sweep(m, now, hit, sweep)
		}
		if gone || err != nil {
			return err
		}
		select {
		case <-over.C:
			return unfinished(hit)
		case <-canceled:
			return errCanceled
		case <-time.After(min(time.Duration(sweep)*100*time.Microsecond, 10*time.Millisecond)):
		}
	}
}

// sweep does what the n-th sweep of killing has to. gone is proven.
func (s *server) sweep(m match, now census, hit []process, n int) (gone bool, err error) {
	switch {
	case s.init && (n >= sweepsBeforeProof || (len(hit) > 0 && n >= sweepsBeforeFreeze)):
		return s.killFrozen(m, now)
	case len(hit) > 0:
		return false, s.killSweep(m, hit)
	}
	return false, nil
}

// unfinished says why nothing was proven in time.
func unfinished(hit []process) error {
	if len(hit) == 0 {
		return errors.New("it could not be proven that nothing is left: no two lists of processes were the same")
	}
	return fmt.Errorf("processes that could not be ended: %d, the first is %d", len(hit), hit[0].pid)
}

// killSweep stops everything first, so that nothing can restart what is
// killed, and looks again for what was born meanwhile.
func (s *server) killSweep(m match, hit []process) error {
	stopped := map[key]bool{}
	for range 4 {
		fresh := 0
		for _, p := range hit {
			if !stopped[p.key()] {
				stopped[p.key()] = true
				fresh++
				_ = syscall.Kill(p.pid, syscall.SIGSTOP)
			}
		}
		if fresh == 0 {
			break
		}
		now, err := s.proc.scan()
		if err != nil {
			return err
		}
		hit = m(now.procs)
	}
	now, err := s.proc.scan()
	if err != nil {
		return err
	}
	hit = m(now.procs)
	for _, p := range hit {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
	// A signal to a group reaches members that were born since the scan.
	for _, g := range wholeGroups(now.procs, hit) {
		_ = syscall.Kill(-g, syscall.SIGKILL)
	}
	return nil
}

// wholeGroups are the process groups of which every member is hit.
func wholeGroups(procs, hit []process) []int {
	isHit := make(map[int]bool, len(hit))
	for _, p := range hit {
		isHit[p.pid] = true
	}
	whole := map[int]bool{}
	for _, p := range hit {
		whole[p.pgid] = p.pgid > 1
	}
	for _, p := range procs {
		if !isHit[p.pid] {
			delete(whole, p.pgid)
		}
	}
	var groups []int
	for g, ok := range whole {
		if ok {
			groups = append(groups, g)
		}
	}
	return groups
}

// killFrozen kills what m matches while everything is stopped. gone is proven:
// others that come and go do not while it looks.
func (s *server) killFrozen(m match, before census) (gone bool, err error) {
	err = s.frozen(before, func(stay map[key]bool) (now census, err error) {
		var sure certainty
		for range quietAfter {
			if now, err = s.proc.scan(); err != nil {
				return now, err
			}
			hit := m(now.procs)
			for _, p := range hit {
				_ = syscall.Kill(p.pid, syscall.SIGKILL)
				stay[p.key()] = true
			}
			if gone = sure.gone(len(hit), now); gone || len(hit) > 0 {
				break
			}
		}
		return now, nil
	})
	return gone, err
}

// frozen has something done while every process of the namespace is stopped: in one
// step, which none can flee by forking. It returns the processes that there are, and
// they continue but for those that stay, which at first are those that were stopped
// before.
func (s *server) frozen(before census, do func(stay map[key]bool) (census, error)) (err error) {
	s.births.Lock() // commands begin before or after
	defer s.births.Unlock()
	if err := s.pids.none(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.pids.again()) }()
	stay := map[key]bool{}
	for _, p := range before.procs {
		stay[p.key()] = p.state == 'T'
	}
	if err := syscall.Kill(-1, syscall.SIGSTOP); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stopping all processes: %w", err)
	}
	now, err := do(stay)
	if err != nil {
		_ = syscall.Kill(-1, syscall.SIGCONT)
		return err
	}
	for _, p := range s.ours(now.procs) {
		if !stay[p.key()] {
			_ = syscall.Kill(p.pid, syscall.SIGCONT)
		}
	}
	return nil
}

// certainty says when scans that find nothing prove that nothing is left.
type certainty struct {
	empty   int // scans in a row
	earlier *census
}

// gone is proven by two empty scans in a row between which nothing happened.
func (c *certainty) gone(hits int, now census) bool {
	if hits > 0 {
		*c = certainty{}
		return false
	}
	still := now.still(c.earlier)
	c.empty++
	c.earlier = &now
	return still
}

// quiet reports whether there was nobody to be seen several times in a row.
func (c *certainty) quiet() bool { return c.empty >= quietAfter }

// killAll ends everything that is the supervisor's, because its own end has
// come. As process 1 the kernel does it when the process ends.
func (s *server) killAll() {
	if !s.init {
		_ = s.kill(s.ours, nil)
	}
}
