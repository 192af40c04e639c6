package view

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/proctor-run/proctor/report"
)

// mostKept is how many trials jobs may have that are kept.
const mostKept = 200_000

// kept has what was read of jobs, as long as their directories are as they were: until a
// job's result, its journal or its list of trials changes. A job that runs is read each
// time, and so is one of which a reader asks to be sure.
type kept struct {
	mu     sync.Mutex
	listed map[string]keptListed // by the paths of jobs
	jobs   []keptJob             // the one that was asked for last is the last
	// indexes are of trajectories that are read by parts, the last one made is the last.
	indexes []keptIndex
}

func newKept() *kept { return &kept{listed: map[string]keptListed{}} }

type keptListed struct {
	stamp stamp
	job   report.ListedJob
	ok    bool
}

type keptJob struct {
	path  string
	stamp stamp
	job   *report.Job
}

// toBeSure reports whether a reader wants nothing that is kept, as browsers say it when a
// page is loaded anew by force.
func toBeSure(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Cache-Control"), "no-cache")
}

// readJob reads a job's directory, or has done so.
func (s *Server) readJob(ctx context.Context, path string, anew bool) (*report.Job, error) {
	now := stampOf(path)
	if j := s.kept.job(path, now); j != nil && !anew {
		return j, nil
	}
	j, err := report.ReadJob(ctx, path, s.o.Zone)
	if err != nil {
		return nil, err
	}
	if j.State != report.Running {
		s.kept.keep(keptJob{path, now, j})
	}
	return j, nil
}

func (k *kept) job(path string, now stamp) *report.Job {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.jobs, func(j keptJob) bool { return j.path == path })
	if i < 0 || k.jobs[i].stamp != now {
		return nil
	}
	found := k.jobs[i]
	k.jobs = append(slices.Delete(k.jobs, i, i+1), found)
	return found.job
}

// keep makes room for a job by giving up those that were asked for longest ago.
func (k *kept) keep(j keptJob) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.jobs = slices.DeleteFunc(k.jobs, func(other keptJob) bool { return other.path == j.path })
	k.jobs = append(k.jobs, j)
	all := 0
	for i := len(k.jobs) - 1; i >= 0; i-- {
		if all += k.jobs[i].job.Planned; all > mostKept {
			k.jobs = slices.Delete(k.jobs, 0, i+1)
			return
		}
	}
}

// listJobs reads what the jobs of a directory say of themselves, several at once.
func (s *Server) listJobs(d directory, anew bool) ([]report.ListedJob, error) {
	names := []string{d.only}
	if d.only == "" {
		entries, err := os.ReadDir(d.path)
		if err != nil {
			return nil, err //nolint:wrapcheck // it names the directory
		}
		names = names[:0]
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}
	found := make([]keptListed, len(names))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(names)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(names); i = int(next.Add(1)) - 1 {
				found[i] = s.listJob(filepath.Join(d.path, names[i]), anew)
			}
		})
	}
	wg.Wait()
	var jobs []report.ListedJob
	for _, f := range found {
		if f.ok {
			jobs = append(jobs, f.job)
		}
	}
	return jobs, nil
}

func (s *Server) listJob(path string, anew bool) keptListed {
	now := stampOf(path)
	s.kept.mu.Lock()
	k, known := s.kept.listed[path]
	s.kept.mu.Unlock()
	if known && k.stamp == now && !anew {
		return k
	}
	k = keptListed{stamp: now}
	k.job, k.ok = report.ListJob(path, s.o.Zone)
	if k.job.State != report.Running {
		s.kept.mu.Lock()
		s.kept.listed[path] = k
		s.kept.mu.Unlock()
	}
	return k
}
