//go:build linux && !amd64 && !arm64

package runsc

// compiledFilters has none: gVisor compiles them at each start.
func compiledFilters() filters { return filters{} }
