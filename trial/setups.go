package trial

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
)

const (
	// worthSharing is how long an installation must have taken for others to begin with what
	// it left: a snapshot, and a sandbox that begins with it, take a tenth of it at most.
	worthSharing = time.Second
	// maxShared bounds what snapshots hold at a time, in bytes: what begins with one later
	// must not fill the disk now.
	maxShared = 8 << 30
	// releaseLimit bounds giving up a snapshot.
	releaseLimit = time.Minute
)

// Setups let trials of one configuration, the attempts at a task and their retries, begin
// with what the agent of the first of them has installed, where the agent is an
// [agent.Provisioner] and the sandbox a [sandbox.Snapshotter]: each in a sandbox of its own,
// as if its agent had installed it there. Its methods may be called concurrently.
type Setups struct {
	lookup harbor.Lookup

	mu     sync.Mutex // guards the rest, and what is in groups
	groups map[string]*setups
	held   int64 // bytes, by all snapshots
}

// setups are those of trials with one configuration.
type setups struct {
	left int // trials that may still come or are under way
	// maker is the trial whose agent installs now, and made is closed when it has ended.
	maker string
	made  chan struct{}
	// shared is what it has left; nil for nothing.
	shared *provisioned
	// alone: each trial installs by itself.
	alone bool
}

// provisioned is what an installation has left.
type provisioned struct {
	snapshot sandbox.Snapshot
	size     int64
	trial    string // whose agent has installed it
	// checksum is that of the task, and image names what the sandbox was made of.
	checksum, image string
	output          []keptFile // in the agent's log directory
}

// NewSetups returns the Setups of trials that will be run. lookup is as in [Runner].
func NewSetups(trials []jobdir.TrialConfig, lookup harbor.Lookup) *Setups {
	s := &Setups{lookup: lookup, groups: map[string]*setups{}}
	for _, cfg := range trials {
		key := cfg.Identity(lookup)
		if s.groups[key] == nil {
			s.groups[key] = &setups{}
		}
		s.groups[key].left++
	}
	maps.DeleteFunc(s.groups, func(_ string, g *setups) bool { return g.left < 2 })
	return s
}

// Leave says that one of the trials, retries included, has ended or will not be run. The
// last one of a configuration gives up what they have shared.
func (s *Setups) Leave(ctx context.Context, cfg jobdir.TrialConfig) error {
	s.mu.Lock()
	g := s.groups[cfg.Identity(s.lookup)]
	if g == nil {
		s.mu.Unlock()
		return nil
	}
	g.left--
	var over *provisioned
	if g.left <= 0 {
		over, g.shared, g.alone = g.shared, nil, true
	}
	s.mu.Unlock()
	return s.release(ctx, over)
}

// Close gives up what trials have shared, also when ctx has ended. No trial may be under way.
func (s *Setups) Close(ctx context.Context) error {
	s.mu.Lock()
	var all []*provisioned
	for _, g := range s.groups {
		all = append(all, g.shared)
		g.shared, g.alone = nil, true
	}
	s.mu.Unlock()
	var errs []error
	for _, p := range all {
		errs = append(errs, s.release(ctx, p))
	}
	return errors.Join(errs...)
}

func (s *Setups) release(ctx context.Context, p *provisioned) error {
	if p == nil {
		return nil
	}
	s.mu.Lock()
	s.held -= p.size
	s.mu.Unlock()
	return release(ctx, p.snapshot)
}

// release gives up a snapshot, also when ctx has ended.
func release(ctx context.Context, snapshot sandbox.Snapshot) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	return snapshot.Release(ctx)
}

// setupTurn is what a trial does about what its agent needs: it takes what another has
// installed, or installs it, and others wait.
type setupTurn struct {
	s     *Setups
	group *setups
	from  *provisioned // to take; nil when it installs
}

// join returns the turn of a trial, nil where nothing is shared. While another trial installs it
// waits, after it has called waits with the name of that.
func (s *Setups) join(ctx context.Context, cfg jobdir.TrialConfig, waits func(trial string)) *setupTurn {
	g := s.group(cfg)
	if g == nil {
		return nil
	}
	for ctx.Err() == nil {
		s.mu.Lock()
		maker, made := g.maker, g.made
		switch {
		case g.shared != nil:
			defer s.mu.Unlock()
			return &setupTurn{s: s, group: g, from: g.shared}
		case g.alone, made == nil && g.left < 2:
			s.mu.Unlock()
			return nil
		case made == nil:
			defer s.mu.Unlock()
			g.maker, g.made = cfg.TrialName, make(chan struct{})
			return &setupTurn{s: s, group: g}
		}
		s.mu.Unlock()
		waits(maker)
		select {
		case <-made:
		case <-ctx.Done():
		}
	}
	return nil
}

func (s *Setups) group(cfg jobdir.TrialConfig) *setups {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.groups[cfg.Identity(s.lookup)]
}

// wanted reports whether others may come for what the trial has installed.
func (t *setupTurn) wanted() bool {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return t.group.left > 1
}

// offer lets others take what the trial has installed, and reports whether there is room
// for it.
func (t *setupTurn) offer(p *provisioned) bool {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.s.held+p.size > maxShared {
		return false
	}
	t.s.held += p.size
	t.group.shared = p
	return true
}

// end ends the turn: without something to take, all others install by themselves. It may be
// called repeatedly, and for no turn.
func (t *setupTurn) end() {
	if t == nil || t.from != nil {
		return
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.group.made == nil {
		return
	}
	t.group.alone = t.group.shared == nil
	close(t.group.made)
	t.group.maker, t.group.made = "", nil
}
