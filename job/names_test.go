package job

// What only tests outside the package need by name.

type (
	LockInputs = lockInputs
)

var (
	LockTrial     = lockTrial
	MatchExisting = matchExisting
	NamePrefix    = namePrefix
)
