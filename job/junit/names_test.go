package junit

// What only tests outside the package need by name.

const (
	Errored = errored
	Failed  = failed
	Passed  = passed
	Skipped = skipped
)
