package reward

// Evidence is what was seen of the reward files, so that tampering is visible.
// Nothing is judged here.
type Evidence struct {
	// Sealed: the reward channel was sealed, see verify.Spec.
	Sealed bool `json:"sealed"`
	// Started and Ended bound the run of the tests, in nanoseconds since 1970
	// by the clock of who ran them; 0 when that did not happen.
	Started int64 `json:"started_ns"`
	Ended   int64 `json:"ended_ns"`
	// Before anything was done to the directory. A file there was not written
	// by the tests.
	Before []File `json:"before"`
	// After the tests ended.
	After []File `json:"after"`
}

// File describes a reward file without following links.
type File struct {
	Name string `json:"name"`
	// Kind is "file", "link" or "other".
	Kind  string `json:"kind"`
	Bytes int64  `json:"bytes"`
	// Mode holds the permissions, in octal.
	Mode string `json:"mode"`
	// Links counts the names of the file; UID owns it. Both are -1 where that
	// cannot be told.
	Links int64 `json:"links"`
	UID   int64 `json:"uid"`
	// ModTime is in nanoseconds since 1970.
	ModTime int64 `json:"mtime_ns"`
	// SHA256 of the content in hex digits; empty for what is no regular file,
	// cannot be read or is larger than a reward file can be.
	SHA256 string `json:"sha256,omitempty"`
}
