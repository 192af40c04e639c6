package value

// What only tests outside the package need by name.

const (
	ZeroDivisionError = zeroDivisionError
)
