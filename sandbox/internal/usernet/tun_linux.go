package usernet

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TUNPath is the device that TUN devices are made with.
const TUNPath = "/dev/net/tun"

// MakeDevice makes a TUN device in the network namespace of the calling thread,
// and configures it and the loopback device. ipv6 says whether there is more of
// IPv6 than the loopback address. The file, which does not block, is for
// OpenDevice, also in another process.
func MakeDevice(path string, ipv6 bool) (_ *os.File, err error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	req, err := unix.NewIfreq(DeviceName)
	if err != nil {
		return nil, fmt.Errorf("naming the device: %w", err)
	}
	req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		return nil, fmt.Errorf("making a TUN device: %w", err)
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4|unix.TUN_F_TSO6); err != nil {
		return nil, fmt.Errorf("setting up a TUN device: %w", err)
	}
	if err := configure(ipv6); err != nil {
		return nil, fmt.Errorf("configuring the sandbox's network: %w", err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

func configure(ipv6 bool) error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("opening a netlink socket: %w", err)
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding the loopback device: %w", err)
	}
	dev, err := h.LinkByName(DeviceName)
	if err != nil {
		return fmt.Errorf("finding the device: %w", err)
	}
	// Link-local addresses lead nowhere, and would cost packets at each start.
	const none = 1 // IN6_ADDR_GEN_MODE_NONE
	_ = h.LinkSetIP6AddrGenMode(dev, none)
	if err := errors.Join(h.LinkSetUp(lo), h.LinkSetMTU(dev, maxTransfer), h.LinkSetUp(dev)); err != nil {
		return fmt.Errorf("setting devices up: %w", err)
	}
	if err := addRoute(h, dev, network4, gateway4); err != nil {
		return err
	}
	if ipv6 {
		_ = addRoute(h, dev, network6, gateway6) // it may be switched off for new namespaces
	}
	return nil
}

func addRoute(h *netlink.Handle, dev netlink.Link, own netip.Prefix, via netip.Addr) error {
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: own.Addr().AsSlice(), Mask: net.CIDRMask(own.Bits(), own.Addr().BitLen())}}
	if own.Addr().Is6() {
		addr.Flags = unix.IFA_F_NODAD
	}
	if err := h.AddrAdd(dev, addr); err != nil {
		return fmt.Errorf("adding address %s: %w", own, err)
	}
	if own.Addr().Is6() {
		if err := addLocalRoute(h, dev, own.Addr()); err != nil {
			return err
		}
	}
	if err := h.RouteAdd(&netlink.Route{LinkIndex: dev.Attrs().Index, Gw: via.AsSlice()}); err != nil {
		return fmt.Errorf("adding the route through %s: %w", via, err)
	}
	return nil
}

// addLocalRoute makes what comes for an IPv6 address the sandbox's own at once. The
// kernel does it in the background when the address is added, and drops the first
// answers that come before that.
func addLocalRoute(h *netlink.Handle, dev netlink.Link, own netip.Addr) error {
	dst := &net.IPNet{IP: own.AsSlice(), Mask: net.CIDRMask(own.BitLen(), own.BitLen())}
	route := netlink.Route{LinkIndex: dev.Attrs().Index, Dst: dst, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST}
	if err := h.RouteAdd(&route); err != nil {
		return fmt.Errorf("adding the local route of %s: %w", own, err)
	}
	return nil
}

// tun is a Device that MakeDevice made.
type tun struct {
	file *os.File
	raw  syscall.RawConn
	// reading is held by ReadPacket: who leaves a file that was closed meanwhile closes it.
	reading sync.Mutex
}

// OpenDevice takes over the file.
func OpenDevice(file *os.File) (Device, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("opening the TUN device: %w", err)
	}
	return &tun{file: file, raw: raw}, nil
}

func (t *tun) ReadPacket(bufs [][]byte) (n int, err error) {
	t.reading.Lock()
	defer t.reading.Unlock()
	waitErr := t.raw.Read(func(fd uintptr) bool {
		for {
			n, err = unix.Readv(int(fd), bufs)
			if !errors.Is(err, unix.EINTR) {
				return !errors.Is(err, unix.EAGAIN)
			}
		}
	})
	if waitErr != nil {
		return 0, fmt.Errorf("reading from the device: %w", waitErr)
	}
	if err == nil && n <= 0 {
		err = io.EOF
	}
	return n, err
}

func (t *tun) WritePacket(bufs [][]byte) (err error) {
	ctlErr := t.raw.Control(func(fd uintptr) {
		for {
			if _, err = unix.Writev(int(fd), bufs); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
	return errors.Join(ctlErr, err)
}

// Close ends a read that waits. The kernel takes a while to remove a device, which
// no sandbox's end has to wait for.
func (t *tun) Close() error {
	long := time.Unix(1, 0) // ago
	if err := t.file.SetReadDeadline(long); err != nil {
		return errors.Join(err, t.file.Close())
	}
	go func() { // ends by itself
		t.reading.Lock()
		defer t.reading.Unlock()
		_ = t.file.Close()
	}()
	return nil
}
