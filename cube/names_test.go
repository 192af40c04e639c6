package cube

// What only tests outside the package need by name.

type (
	UnknownTypeError = unknownTypeError
	ValidationError  = validationError
)
