package report

import (
	"github.com/proctor-run/proctor/audit"
)

// Verification is what was found where a job's files were held against each other: what
// proctor verify --json prints per job.
type Verification struct {
	Job    string `json:"job"`
	Trials int    `json:"n_trials"`
	// Findings are places where files disagree; none means that all that could be checked
	// agrees.
	Findings []Finding `json:"findings"`
	// Unchecked says in words what could not be checked.
	Unchecked []string `json:"unchecked"`
}

// Finding is one place where a job's files disagree.
type Finding struct {
	Kind    audit.Kind `json:"kind"`
	Trial   string     `json:"trial,omitempty"`
	File    string     `json:"file,omitempty"`
	Message string     `json:"message"`
}

// NewVerification gives what was found the form in which it is reported.
func NewVerification(r *audit.Report) *Verification {
	return &Verification{Job: r.Dir, Trials: r.Trials, Findings: NewFindings(r.Findings), Unchecked: orEmpty(r.Unchecked)}
}

// NewFindings gives findings the form in which they are reported.
func NewFindings(found []audit.Finding) []Finding {
	list := make([]Finding, len(found))
	for i, f := range found {
		list[i] = Finding(f)
	}
	return list
}
