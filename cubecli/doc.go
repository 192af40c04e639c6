// Package cubecli is the command line of cubes, for programs of their authors:
//
//	func main() { cubecli.Main(words.Cube()) }
//
// is a program that lists, shows, tests and runs the cube, as "proctor cube"
// does with those that are shipped, and resumes jobs of it. The commands of
// proctor are made of this package, too.
//
// Cubes whose tasks run in containers need sandboxes, and those are opened by
// programs alone: set [Program.Sandboxes]. Without it the package needs no
// container runtime, and neither do programs made with it.
package cubecli
