package shell

// What only tests outside the package need by name.

var (
	LineRange = lineRange
)
