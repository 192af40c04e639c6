// Package guest is the supervisor that runs inside a sandbox as its first
// process, and the client that speaks to it from outside.
//
// Inside, [Main] serves on standard input and output; it is all that a small
// binary or a hidden subcommand has to call. Outside, [Dial] takes the other
// ends of the two pipes and returns a [Client], whose methods have the
// semantics of sandbox.Sandbox:
//
//	c, err := guest.Dial(ctx, stdout, stdin, guest.Options{Build: version})
//	st, err := c.Exec(ctx, sandbox.Command{Shell: "make test", Stdout: &out})
//	err = c.Close()
//
// A command costs one fork, not the start of a runtime's process. Everything
// that is orphaned in the sandbox comes to the supervisor, which reaps it, and
// knows from process start times, descent and an inherited mark what belongs
// to which command.
//
// When standard input ends, the owner outside has died: the supervisor kills
// everything and exits.
//
// # Protocol
//
// Both sides begin with a greeting: the magic "proctor-guest\n", the protocol
// version (4 bytes), and the build version (2 bytes of length, then text).
// Neither goes on when the other's versions differ from its own.
//
// Then frames follow: type (1 byte), call id (4 bytes), payload length
// (4 bytes), payload; all numbers big-endian. The client chooses the ids. Data
// in both directions flows against credit: a sender has [window] bytes per
// call, and the receiver grants more as it consumes. So each side's memory is
// bounded per call, and one call that is not read does not hold up another.
//
// The side inside is not trusted: lengths are checked before anything is
// allocated, and any breach of the protocol ends the connection with an error.
package guest
