package value

// TypeName is the name of a value's Python type, type(v).__name__.
func TypeName(v Value) string {
	switch v.(type) {
	case Bool:
		return "bool"
	case Int:
		return "int"
	case Float:
		return "float"
	case Str:
		return "str"
	case List:
		return "list"
	case *Object:
		return "dict"
	}
	return "NoneType"
}
