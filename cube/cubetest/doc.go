// Package cubetest tests cubes.
//
// [Run] is the conformance suite. A cube's own test is a few lines:
//
//	func TestConformance(t *testing.T) {
//		cubetest.Run(t, cubetest.Subject{
//			Register: arithmetic.Register,
//			Config:   &arithmetic.Config{},
//			Agent:    arithmetic.Agent,
//			Options:  cube.Options{CacheRoot: t.TempDir()},
//		})
//	}
//
// [Check] is the same without a testing.T, for programs. The checks are those of
// CUBE, section 10.5; their names stay the same.
//
// [Debug] is the reference's debug suite with its own checks, texts and exit
// codes (section 10.4), [RunEpisode] one episode of it.
package cubetest
