// Package usernet is a network for one sandbox that needs no privilege of the
// host: a TUN device in the sandbox's network namespace, whose packets come to
// a TCP/IP stack in this process. The stack takes every address for its own,
// and carries what is sent there over sockets of the host. So a sandbox has
// a loopback device and abstract sockets of its own, sees nobody's packets, and
// reaches what Outside lets it reach and nothing else.
//
// A [Net] is bounded: so many connections, each with so much memory, whatever
// is sent to it. What is beyond that is refused or lost, as on any network.
package usernet
