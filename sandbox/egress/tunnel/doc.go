// Package tunnel carries TCP connections of programs in a sandbox out of it, over
// one pair of pipes, whatever network the sandbox has.
//
// Inside, [Relay] listens on the loopback interface and opens a [Stream] for
// each connection that it accepts. It is all that the guest program has to
// call. Outside, [NewMux] takes the other ends of the two pipes after
// [ReadHello], and [Mux.Accept] returns the streams:
//
//	addr, err := tunnel.ReadHello(stdout)
//	m := tunnel.NewMux(stdout, stdin)
//	go func() { done <- m.Run() }()
//	for { s, err := m.Accept(); ... }
//
// # Protocol
//
// The protocol is that of package frames. The relay begins with its greeting,
// whose text is the port that it listens on; the outer side has none. The
// relay opens streams and chooses their ids. A sender has [Window] bytes per
// stream and direction.
package tunnel
