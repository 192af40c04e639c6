package bench

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/proctor-run/proctor/sandbox"
)

// Report is what a Run measured. Its JSON form is documented in
// docs/performance.md.
type Report struct {
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"`
	Runs     int       `json:"runs"`
	Trials   int       `json:"trials"`
	AtATime  int       `json:"trials_at_a_time"`
	Machine  Machine   `json:"machine"`
	Subjects []Subject `json:"subjects"`
	// HostNetwork is the download of operation network without a sandbox.
	HostNetwork *Stats   `json:"host_network,omitempty"`
	Results     []Result `json:"results"`
}

// Machine is where it was measured.
type Machine struct {
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Processors int    `json:"processors"`
}

// Result is one operation with what each subject that was asked for it did.
type Result struct {
	Operation
	// BaseSubject is the subject that ratios are to: the first one that was
	// measured. It is empty when none was, and for operation network.
	BaseSubject string    `json:"base,omitempty"`
	Subjects    []Measure `json:"subjects"`
}

// Measure is one operation of one subject.
type Measure struct {
	Subject string `json:"subject"`
	*Stats
	// Ratio says how many times as good as the base it is, by the medians; 0 when
	// there is nothing to compare with.
	Ratio float64 `json:"ratio,omitempty"`
	// Unable: the subject does not have the ability. Note says why, or what
	// failed.
	Unable bool   `json:"unable,omitempty"`
	Note   string `json:"note,omitempty"`
}

// Stats summarise samples, in the operation's unit. P95 is the sample that at
// most one in twenty is worse than.
type Stats struct {
	N    int     `json:"n"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	Best float64 `json:"best"`
}

// stats is nil for no samples.
func stats(samples []float64, unit string) *Stats {
	if len(samples) == 0 {
		return nil
	}
	worse := slices.Clone(samples)
	slices.Sort(worse) // best first
	if unit != unitSeconds {
		slices.Reverse(worse)
	}
	n := len(worse)
	median := worse[n/2]
	if n%2 == 0 {
		median = (worse[n/2-1] + worse[n/2]) / 2
	}
	return &Stats{N: n, P50: median, P95: worse[int(math.Ceil(0.95*float64(n)))-1], Best: worse[0]}
}

func (r *run) report(started time.Time) *Report {
	rep := &Report{
		Started: started.UTC(), Seconds: r.since(started), Runs: r.Runs, Trials: r.Trials, AtATime: r.AtATime,
		Machine:     Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Processors: runtime.NumCPU()},
		Subjects:    r.Subjects,
		HostNetwork: stats(r.host, unitMegabytes),
	}
	for _, op := range operations {
		if r.wanted[op.Name] {
			rep.Results = append(rep.Results, r.result(op, rep.HostNetwork))
		}
	}
	return rep
}

func (r *run) result(op Operation, host *Stats) Result {
	out := Result{Operation: op}
	base := host
	if op.Against != againstHost {
		base = nil
		against := operations[slices.IndexFunc(operations, func(o Operation) bool { return o.Name == op.Against })]
		for _, s := range r.Subjects {
			if base = stats(r.all[s.Name][against.Name], against.Unit); base != nil {
				out.BaseSubject = s.Name
				break
			}
		}
	}
	for _, s := range r.Subjects {
		m := Measure{Subject: s.Name, Stats: stats(r.all[s.Name][op.Name], op.Unit)}
		if err := r.notes[s.Name][op.Name]; err != nil && m.Stats == nil {
			m.Unable = errors.Is(err, errUnable) || errors.Is(err, sandbox.ErrUnsupported)
			m.Note = strings.TrimPrefix(err.Error(), errUnable.Error()+": ")
		}
		if m.Stats != nil && base != nil && base.P50 > 0 && m.P50 > 0 {
			m.Ratio = m.P50 / base.P50
			if op.Unit == unitSeconds {
				m.Ratio = base.P50 / m.P50
			}
		}
		out.Subjects = append(out.Subjects, m)
	}
	return out
}
