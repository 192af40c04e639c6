package journal

import (
	"fmt"
	"slices"
)

// Before returns how the last run of the job in a directory was started: the entry
// tells whether it sealed verifiers and hardened sandboxes, see trial.Runner. known
// is false when there is no journal that says so.
func Before(dir string) (start Entry, known bool, err error) {
	j, err := Load(dir)
	if err != nil {
		return start, false, fmt.Errorf("asking how the job was started: %w", err)
	}
	for _, e := range j.Entries {
		if e.Kind == JobStarted || e.Kind == JobResumed {
			start, known = e, true
		}
	}
	return start, known, nil
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
