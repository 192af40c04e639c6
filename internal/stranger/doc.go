// Package stranger holds the test that builds a module outside of this one, as
// somebody who uses the library would have it.
package stranger
