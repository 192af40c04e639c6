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
// The protocol is that of package frames. Both sides begin with a greeting,
// whose text is the build version; neither continues when the other's differs
// from its own. The client chooses the ids, one per call. A sender has 512 KiB
// per call and direction before the receiver grants more, and 2 MiB of an upload
// or a download.
package guest
