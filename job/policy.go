package job

import (
	"fmt"
	"path/filepath"

	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/score"
)

// adoptPolicy is the policy of a job that goes on in a directory: the one that is there,
// which no other takes the place of. Once a job has begun, it is too late to fix one:
// who chooses the policy would know scores.
func (d *jobDir) adoptPolicy(asked *outcome.Policy, begun bool) (*outcome.Policy, error) {
	begun = begun || d.begun
	if asked != nil && !begun {
		_, err := asked.Text()
		return asked, err
	}
	stored, err := score.FixedPolicy(d.path)
	if err != nil || asked == nil || !begun {
		return stored, err
	}
	change := jobdir.Change{Path: score.PolicyFile, Results: true}
	if change.New, err = asked.Text(); err != nil {
		return nil, err
	}
	if stored != nil {
		if change.Old, err = stored.Text(); err != nil {
			return nil, err
		}
	}
	if change.Old == change.New {
		return stored, nil
	}
	text := fmt.Sprintf("Job directory %s was begun with another policy.", d.path)
	if stored == nil {
		text = fmt.Sprintf("Job directory %s was begun without a policy, and one is fixed before a job runs.", d.path)
	}
	return nil, &jobdir.ChangedError{Err: jobdir.RuleError(text), Changes: []jobdir.Change{change}}
}

// writePolicy keeps the policy with the job, before anything of it runs.
func (p *Prepared) writePolicy() (*jobdir.FileDigest, error) {
	if p.Policy == nil {
		return nil, nil //nolint:nilnil // what is not written has no digest
	}
	text, err := p.Policy.Text()
	if err != nil {
		return nil, err
	}
	data := append([]byte(text), '\n')
	if err := atomicfile.Write(filepath.Join(p.Config.Dir(), score.PolicyFile), data, 0o644); err != nil {
		return nil, err
	}
	return new(jobdir.DigestOf(data)), nil
}
