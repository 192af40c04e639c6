package oci

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/usernet"
	"github.com/proctor-run/proctor/sandbox/oci/internal/network"
)

// networkKind chooses the namespace of a sandbox.
func (b *Backend) networkKind(n sandbox.Network) network.Kind {
	switch {
	case b.opts.ShareHost && public(n) && !n.Switchable:
		return network.Host
	case b.noTUN == nil && (n.Switchable || public(n)):
		return network.Own
	}
	return network.None
}

// proxied reports whether a sandbox has an egress proxy. A network namespace cannot
// be changed while processes are in it: where a policy will be switched there is
// a proxy from the first, and the sandbox's own network is opened and shut. Where
// a public sandbox cannot have a network of its own the proxy is its way out.
func (b *Backend) proxied(n sandbox.Network) bool {
	return n.Switchable || n.Mode == sandbox.NetworkAllowlist || public(n) && b.networkKind(n) == network.None
}

// tunPath is the device that networks are made with; tests of ordinary users
// have one of their own.
var tunPath = usernet.TUNPath

// OwnNetwork returns nil when public sandboxes have a network of their own on this
// machine, and otherwise why they reach others through a proxy only, and what to do
// about it.
func OwnNetwork() (fix string, err error) {
	switch err := network.Try(tunPath); {
	case err == nil:
		return "", nil
	case errors.Is(err, fs.ErrPermission):
		return "let users open it, as most systems do: chmod 0666 " + tunPath, err
	default:
		return "load the kernel module: modprobe tun (in a container: run it with --device " + tunPath + ")", err
	}
}

// networkWarning says what a public sandbox has instead of a network of its own; it is
// empty for others.
func (b *Backend) networkWarning(n sandbox.Network) string {
	switch kind := b.networkKind(n); {
	case kind == network.Host:
		return "public network: the sandbox uses this machine's own network, its loopback services and abstract sockets included, because the setting network=host says so"
	case kind == network.None && public(n):
		fix, _ := OwnNetwork()
		return fmt.Sprintf("public network: the sandbox has no network but its loopback and the HTTP proxy that HTTP_PROXY and its like name, because it cannot have one of its own: %v; "+
			"programs that ask no proxy reach nothing (%s; or --ek network=host for this machine's own network)", b.noTUN, cmp.Or(fix, "try again"))
	}
	return ""
}

// openNetwork takes over the device of the sandbox's own network, which is shut
// until it is to be public.
func (s *Sandbox) openNetwork(n sandbox.Network) error {
	device := s.process.TakeDevice()
	if device == nil {
		return nil
	}
	dev, err := usernet.OpenDevice(device)
	if err != nil {
		_ = device.Close() // nothing that was written waits in it
		return err
	}
	up := s.backend.opts.Egress
	s.net, err = usernet.New(dev, usernet.Outside{Dial: up.Connect, Refuse: up.Refuses, NameServers: up.Servers}, public(n))
	return err
}
