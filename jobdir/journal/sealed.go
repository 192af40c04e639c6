package journal

import (
	"fmt"
	"slices"
)

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

// SecretNames are the variables and settings that runs of the job in a directory were
// told to keep secret, see trial.Runner; none when it has no journal.
func SecretNames(dir string) ([]string, error) {
	j, err := Load(dir)
	if err != nil {
		return nil, fmt.Errorf("asking what is secret: %w", err)
	}
	var names []string
	for _, e := range j.Entries {
		for _, name := range e.SecretNames {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}
