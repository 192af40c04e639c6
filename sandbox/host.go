package sandbox

import "context"

// Host is what the sandboxes of a backend share. A number that is 0 is not known.
type Host struct {
	// CPUs that they may use together.
	CPUs int
	// MemoryMiB that they may use together.
	MemoryMiB int64
	// DiskMiB is what is free where their files are written.
	DiskMiB int64
}

// HostTeller is a Backend that knows what its sandboxes share, also where they are on
// another machine.
type HostTeller interface {
	// Host asks for it. The numbers are those of the moment.
	Host(ctx context.Context) (Host, error)
}
