// Package harbor reads Harbor task directories: task.toml of every schema
// version, instructions, checksums, templates, and the rules that follow from
// them without running anything.
//
// Begin with [Load] for one task, or [Discover] for a path that may be a task
// or a directory of tasks. A [Task] has the configuration, the instruction and
// the paths. [Checksum] and [PackageHash] identify its content. [ParseConfig]
// reads a task.toml alone.
//
// What a task directory says is not trusted: files are read up to a bound and
// nothing of it is run. Errors carry the name of the exception under which
// results record them, as method ErrorType.
//
// Sections named in comments are those of the Harbor task format unless
// another format is named.
package harbor
