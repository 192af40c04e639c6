// Package planted puts in the place of files what is none, or is larger than any file,
// for tests of what reads files that others wrote.
package planted
