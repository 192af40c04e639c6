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
	Machine  machine   `json:"machine"`
	Subjects []Subject `json:"subjects"`
	// HostNetwork is the download of operation network without a sandbox.
	HostNetwork *summary `json:"host_network,omitempty"`
	Results     []row    `json:"results"`
}

// machine is where it was measured.
type machine struct {
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Processors int    `json:"processors"`
}

// row is one operation with what each subject that was asked for it did.
type row struct {
	Operation
	// BaseSubject is the subject that ratios are to: the first one that was
	// measured. It is empty when none was, and for operation network.
	BaseSubject string    `json:"base,omitempty"`
	Subjects    []measure `json:"subjects"`
}

// measure is one operation of one subject.
type measure struct {
	Subject string `json:"subject"`
	summary
	// Ratio is the speed-up relative to the base, by the medians; 0 when
	// there is nothing to compare with.
	Ratio float64 `json:"ratio,omitempty"`
	// Unable: the subject does not have the ability. Note says why, or what
	// failed.
	Unable bool   `json:"unable,omitempty"`
	Note   string `json:"note,omitempty"`
}

// summary of samples, in the operation's unit; N is 0 where there is none. P95 is the sample that at
// most one in twenty is worse than.
type summary struct {
	N    int     `json:"n,omitempty"`
	P50  float64 `json:"p50,omitempty"`
	P95  float64 `json:"p95,omitempty"`
	Best float64 `json:"best,omitempty"`
}

func summarise(samples []float64, unit string) summary {
	if len(samples) == 0 {
		return summary{}
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
	return summary{N: n, P50: median, P95: worse[int(math.Ceil(0.95*float64(n)))-1], Best: worse[0]}
}

func (r *run) report(started time.Time) *Report {
	rep := &Report{
		Started: started.UTC(), Seconds: r.since(started), Runs: r.Runs, Trials: r.Trials, AtATime: r.AtATime,
		Machine:  machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Processors: runtime.NumCPU()},
		Subjects: r.Subjects,
	}
	host := summarise(r.host, unitMegabytes)
	if host.N > 0 {
		rep.HostNetwork = &host
	}
	for _, op := range operations {
		if r.wanted[op.Name] {
			rep.Results = append(rep.Results, r.result(op, host))
		}
	}
	return rep
}

func (r *run) result(op Operation, host summary) row {
	out := row{Operation: op}
	base := host
	if op.Against != againstHost {
		base = summary{}
		against := operations[slices.IndexFunc(operations, func(o Operation) bool { return o.Name == op.Against })]
		for _, s := range r.Subjects {
			if base = summarise(r.all[s.Name][against.Name], against.Unit); base.N > 0 {
				out.BaseSubject = s.Name
				break
			}
		}
	}
	for _, s := range r.Subjects {
		m := measure{Subject: s.Name, summary: summarise(r.all[s.Name][op.Name], op.Unit)}
		if err := r.notes[s.Name][op.Name]; err != nil && m.N == 0 {
			m.Unable = errors.Is(err, errUnable) || errors.Is(err, sandbox.ErrUnsupported)
			m.Note = strings.TrimPrefix(err.Error(), errUnable.Error()+": ")
		}
		if base.P50 > 0 && m.P50 > 0 {
			m.Ratio = m.P50 / base.P50
			if op.Unit == unitSeconds {
				m.Ratio = base.P50 / m.P50
			}
		}
		out.Subjects = append(out.Subjects, m)
	}
	return out
}
