package fake

// What only tests outside the package need by name.

var (
	Garbage = garbage
	Wait    = wait
)
