package oci

import (
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
	case b.noTUN == nil && (n.Switchable || public(n)):
		return network.Own
	case proxied(n) || !public(n):
		return network.None
	}
	return network.Host
}

// tunPath is the device that networks are made with; tests of ordinary users
// have one of their own.
var tunPath = usernet.TUNPath

// OwnNetwork returns nil when public sandboxes have a network of their own on this
// machine, and otherwise why they share the machine's, and what to do about it.
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

// sharedNetwork is the warning for sandboxes without a network of their own.
func (b *Backend) sharedNetwork() string {
	return fmt.Sprintf("public network: the sandbox uses this machine's own network, its loopback services and abstract sockets included, because it cannot have one of its own: %v", b.noTUN)
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
