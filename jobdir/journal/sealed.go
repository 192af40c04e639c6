package journal

import "fmt"

// SealedBefore reports whether the last run of the job in a directory sealed the
// reward channel, see trial.Runner; known is false when it has no journal that
// says so.
func SealedBefore(dir string) (sealed, known bool, err error) {
	j, err := Load(dir)
	if err != nil {
		return false, false, fmt.Errorf("asking whether the verifier was sealed: %w", err)
	}
	for _, e := range j.Entries {
		if e.Kind == JobStarted || e.Kind == JobResumed {
			sealed, known = e.SealedVerifier, true
		}
	}
	return sealed, known, nil
}
