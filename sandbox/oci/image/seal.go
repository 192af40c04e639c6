package image

import (
	"errors"
	"os"
	"strings"
	"sync"
)

// A layer is published before all of it is on disk: a process that is killed
// loses nothing by that, only a machine that stops can. So layer.json names the
// boot of the machine that wrote it, and counts for nothing in another. When
// the file system has written everything out the name is taken away: the layer
// is sealed. One writing out seals all layers of a pull, while their image is
// used already.

// bootID names the time since this machine was started; empty where that
// cannot be had, and then layers are written out before they are published.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// sealer seals layers in the background, several at once.
type sealer struct {
	dir  string // on the file system to write out
	seal func(key string) error

	mu      sync.Mutex
	waiting map[string]bool // keys; guarded by mu
	running bool            // guarded by mu
	errs    []error         // guarded by mu
	wg      sync.WaitGroup
}

// add has a layer sealed soon. It must not be called after end.
func (s *sealer) add(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = map[string]bool{}
	}
	s.waiting[key] = true
	if !s.running {
		s.running = true
		s.wg.Go(s.run)
	}
}

func (s *sealer) run() {
	for {
		s.mu.Lock()
		keys := s.waiting
		s.waiting = nil
		s.running = len(keys) > 0
		s.mu.Unlock()
		if len(keys) == 0 {
			return
		}
		err := syncTree(s.dir)
		if err == nil {
			var errs []error
			for key := range keys {
				errs = append(errs, s.seal(key))
			}
			err = errors.Join(errs...)
		}
		s.mu.Lock()
		s.errs = append(s.errs, err)
		s.mu.Unlock()
	}
}

// end waits until everything is sealed.
func (s *sealer) end() error {
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}
