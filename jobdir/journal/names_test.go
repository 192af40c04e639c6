package journal

// What only tests outside the package need by name.

var (
	Read = read
)
