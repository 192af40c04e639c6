package oci

// The files in the directory of a sandbox, besides those of its root file system and
// of its runtime.
const (
	fileOwner = "owner.json" // whose it is, see record
	dirBase   = "base"       // where the lower directories are mounted alone, below snapshots
	dirMounts = "mounts"     // sources of mounts that go with the sandbox
)
