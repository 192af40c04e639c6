//go:build linux && !amd64

package runsc

// compiledFilters has none: gVisor compiles them at each start. They can be written on a
// machine of their architecture only.
func compiledFilters() filters { return filters{} }
