package runtimes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox/internal/usernet"
)

// makeDevice makes the device of a sandbox's own network in the namespace of
// the calling thread.
func (l *launch) makeDevice() (*os.File, error) {
	if l.TUN == "" {
		return nil, nil
	}
	return usernet.MakeDevice(l.TUN, l.IPv6)
}

// deviceSocket is what the helper sends the device of its network through.
type deviceSocket struct{ helper, caller *os.File }

// deviceLimit bounds the time until the helper has made the device.
const deviceLimit = 30 * time.Second

// prepareNetwork makes cmd start in a new network namespace too.
func (m *Users) prepareNetwork(cmd *exec.Cmd) error {
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
func (m *Users) device() (*os.File, error) {
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

func (m *Users) closeDevices() {
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
