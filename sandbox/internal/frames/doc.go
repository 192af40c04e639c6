// Package frames is what the protocols over the pipes into a sandbox have in
// common: package guest speaks one for commands and files, package tunnel one
// for connections.
//
// Both sides of a connection, or the inner one, begin with a [Greeting]: a
// magic line, the version of the protocol (4 bytes) and a text (2 bytes of
// length, then text). Then frames follow: type (1 byte), id (4 bytes), payload
// length (4 bytes), payload; all numbers big-endian. The id is that of a call
// or a stream, of which many share the connection.
//
// Data flows against credit: a sender has a window of bytes per id and
// direction, where each frame counts [Cost] bytes more than its payload, and
// the receiver grants more as it consumes. So each side's memory is bounded
// per id, and one id that is not read does not hold up another.
//
// The other side is not trusted: lengths are checked before anything is
// allocated, and every breach of the protocol is an error that wraps
// [ErrProtocol], after which the connection cannot go on.
//
// The package is part of the guest program and imports nothing that would make
// its start slower, such as package net.
package frames
