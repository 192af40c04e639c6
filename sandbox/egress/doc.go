// Package egress is what sandboxes reach the network through when not all of it
// is allowed: an HTTP forward proxy outside of the sandbox, which decides by
// host name and denies by default.
//
// A sandbox under it has no network but its loopback interface, by the
// kernel's doing. A relay inside (package tunnel) carries what programs send
// to a port of that interface to the proxy. A backend has one [Gate] for each
// such sandbox:
//
//	g, err := egress.Open(ctx, egress.Options{Exec: sb.exec, Relay: argv, Policy: policy})
//	status, err := sb.exec(ctx, g.Command(cmd, spec.Env))
//	g.Shut()
//	err = g.Wait(ctx)
//
// A program that does not ask the proxy reaches nothing. When the relay dies,
// because somebody inside killed it, the same is true of all programs: there
// is no way to open the network from inside.
//
// # The way to this program
//
// The same relay carries connections of programs in a sandbox to a server of this
// program, whatever the sandbox's network is. A backend has [Inlets] for that, its
// sandboxes are a [Listener], and callers serve what comes in:
//
//	l, ok := sandbox.As[egress.Listener](sb)
//	inlet, err := l.Listen(ctx)
//	go server.Serve(inlet)
//	url := "http://" + inlet.Addr().String() // inside
//
// # What is allowed
//
// An entry of the allow list is a host name, which matches itself, or "*."
// and a host name, which matches every name below that one, however deep, but
// not the name itself. Ports do not matter. An address matches only an entry
// that is the same address. The proxy resolves a name once and connects to
// what came out of that, but never to loopback, link-local, unspecified and
// multicast addresses: it runs in the host's network, where these lead to
// services of the host. When a tunnel begins with TLS, the server name that
// the client asks for must be allowed too; what begins like TLS and cannot be
// read is refused.
package egress
