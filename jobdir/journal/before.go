package journal

import "fmt"

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
