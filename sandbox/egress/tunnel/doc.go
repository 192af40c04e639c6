// Package tunnel carries TCP connections out of a sandbox that has no network,
// over one pair of pipes.
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
// The relay begins with its greeting: the magic "proctor-relay\n", the
// protocol version and the port that it listens on (2 bytes each). Then frames
// follow in both directions: type (1 byte), stream id (4 bytes), payload
// length (4 bytes), payload; all numbers big-endian. The relay opens streams
// and chooses their ids. Data flows against credit: a sender has [Window]
// bytes per stream, and the receiver grants more as they are read. So memory
// is bounded for each stream, and a stream that nobody reads holds up no other.
//
// The side inside is not trusted: lengths are checked before anything is
// allocated, and any breach of the protocol ends the connection with an error.
package tunnel
