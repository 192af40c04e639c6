package oci

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/usernet"
)

// networkKind is what network namespace a sandbox is in.
type networkKind int

const (
	// ownNetwork is a namespace of the sandbox's own with a device, whose other
	// end is in this process.
	ownNetwork networkKind = iota
	// noNetwork is a namespace with a loopback device and nothing else.
	noNetwork
	// hostNetwork is the host's namespace, where no device can be made.
	hostNetwork
)

// networkKind chooses the namespace of a sandbox.
func (b *Backend) networkKind(n sandbox.Network) networkKind {
	switch {
	case b.noTUN == nil && (n.Switchable || public(n)):
		return ownNetwork
	case proxied(n) || !public(n):
		return noNetwork
	}
	return hostNetwork
}

// tunPath is the device that networks are made with; tests of ordinary users
// have one of their own.
var tunPath = usernet.TUNPath

// tryTUN says why sandboxes cannot have a network of their own.
func tryTUN() error {
	f, err := os.OpenFile(tunPath, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("closing %q: %w", tunPath, err)
	}
	return nil
}

// OwnNetwork returns nil when public sandboxes have a network of their own on this
// machine, and otherwise why they share the machine's, and what to do about it.
func OwnNetwork() (fix string, err error) {
	switch err := tryTUN(); {
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

// hasIPv6 reports whether this machine has a way to all of IPv6.
func hasIPv6() bool { return defaultRoute6(readSmall("/proc/net/ipv6_route")) }

// defaultRoute6 looks for a default route in the format of /proc/net/ipv6_route:
// destination, its prefix length, source, its prefix length, next hop, metric,
// references, use, flags, device.
func defaultRoute6(table string) bool {
	const fields, rejects = 10, "lo" // the routes that refuse lead there
	all := strings.Repeat("0", 32)
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) == fields && f[0] == all && f[1] == "00" && f[fields-1] != rejects {
			return true
		}
	}
	return false
}

// makeDevice makes the device of a sandbox's own network in the namespace of
// the calling thread.
func (l *launch) makeDevice() (*os.File, error) {
	if l.TUN == "" {
		return nil, nil
	}
	return usernet.MakeDevice(l.TUN, l.IPv6)
}

// openNetwork takes over the device of the sandbox's own network, which is shut
// until it is to be public.
func (s *Sandbox) openNetwork(n sandbox.Network) error {
	if s.process.device == nil {
		return nil
	}
	dev, err := usernet.OpenDevice(s.process.device)
	if err != nil {
		s.process.closeDevice()
		return err
	}
	s.process.device = nil
	up := s.backend.opts.Egress
	s.net, err = usernet.New(dev, usernet.Outside{Dial: up.Connect, Refuse: up.Refuses, NameServers: up.Servers}, public(n))
	return err
}

func (p *process) closeDevice() {
	if p.device != nil {
		_ = p.device.Close() // nothing that was written waits in it
		p.device = nil
	}
}

// deviceSocket is what the helper sends the device of its network through.
type deviceSocket struct{ helper, caller *os.File }

// deviceLimit bounds the time until the helper has made the device.
const deviceLimit = 30 * time.Second

// prepareNetwork makes cmd start in a new network namespace too.
func (m *idMap) prepareNetwork(cmd *exec.Cmd) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("making a socket pair: %w", err)
	}
	m.devices = &deviceSocket{helper: os.NewFile(uintptr(fds[0]), "helper"), caller: os.NewFile(uintptr(fds[1]), "caller")}
	cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWNET
	cmd.ExtraFiles = append(cmd.ExtraFiles, m.devices.helper)
	return nil
}

// device receives the device of a started helper's network. There is none when
// the helper has none to make, or has failed, of which it says more itself.
func (m *idMap) device() (*os.File, error) {
	if m.devices == nil {
		return nil, nil
	}
	defer m.closeDevices()
	_ = m.devices.helper.Close() // so that the helper's end is seen
	limit := unix.NsecToTimeval(deviceLimit.Nanoseconds())
	fd := int(m.devices.caller.Fd())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return nil, fmt.Errorf("waiting for the sandbox's network: %w", err)
	}
	f, err := receiveFile(fd)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("waiting for the sandbox's network: %w", err)
	}
	return f, nil
}

func (m *idMap) closeDevices() {
	if m.devices != nil {
		_, _ = m.devices.helper.Close(), m.devices.caller.Close()
		m.devices = nil
	}
}

// receiveFile takes the one file of the next message.
func receiveFile(fd int) (*os.File, error) {
	data, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	n, size, _, _, err := unix.Recvmsg(fd, data, rights, unix.MSG_CMSG_CLOEXEC)
	for errors.Is(err, unix.EINTR) {
		n, size, _, _, err = unix.Recvmsg(fd, data, rights, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil {
		return nil, os.NewSyscallError("recvmsg", err)
	}
	if n == 0 {
		return nil, io.EOF
	}
	messages, err := unix.ParseSocketControlMessage(rights[:size])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("a message with %d parts: %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("a message with %d files: %w", len(fds), err)
	}
	return os.NewFile(uintptr(fds[0]), "tun"), nil
}

// sendDevice makes the device of the helper's network, and sends it to the
// caller through the socket.
func (l *launch) sendDevice(socket int) error {
	device, err := l.makeDevice()
	if err != nil || device == nil {
		return err
	}
	fd := int(device.Fd())
	if err := unix.SetNonblock(fd, true); err != nil { // Fd undoes it
		return fmt.Errorf("sending the sandbox's network: %w", err)
	}
	if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(fd), nil, 0); err != nil {
		return fmt.Errorf("sending the sandbox's network: %w", err)
	}
	return errors.Join(device.Close(), os.NewFile(uintptr(socket), "caller").Close())
}

// hostsElsewhere are the lines of a hosts(5) file that do not lead to the machine
// itself: in a sandbox these would lead to the sandbox.
func hostsElsewhere(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if addr, err := netip.ParseAddr(fields[0]); err == nil && !addr.IsLoopback() && !addr.IsMulticast() && !addr.IsUnspecified() {
			kept.WriteString(strings.Join(fields, "\t") + "\n")
		}
	}
	return kept.String()
}

// resolverInside is resolv.conf(5) with the name server of the sandbox's network
// in place of the host's.
func resolverInside(text string) string {
	kept := "nameserver " + usernet.Resolver().String() + "\n"
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 1 && (fields[0] == "search" || fields[0] == "domain" || fields[0] == "options") {
			kept += strings.Join(fields, " ") + "\n"
		}
	}
	return kept
}
