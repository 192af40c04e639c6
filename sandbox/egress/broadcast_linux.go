package egress

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// noBroadcast makes the kernel refuse addresses that only the host's routes show
// to be broadcast addresses of its links. Package net allows them for all
// sockets for datagrams.
func noBroadcast(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "udp") {
		return nil
	}
	var set error
	err := c.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 0) })
	if err = errors.Join(err, set); err != nil {
		return fmt.Errorf("forbidding broadcasts: %w", err)
	}
	return nil
}
