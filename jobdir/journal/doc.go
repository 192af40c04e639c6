// Package journal is proctor's own record in a job directory.
//
// A [Writer] appends entries: what is meant to be done before it is done, what
// was made outside the directory, and what was spent. [Load] reads a directory's
// journal after any crash; a [State] says what it comes to. docs/journal.md
// describes the format.
package journal
