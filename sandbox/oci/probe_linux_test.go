package oci

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// probeArg0 is the base name under which the test program is a hostile program
// in a sandbox.
const probeArg0 = "oci-probe"

// runProbe tries what its first argument says, and prints the result.
func runProbe(args []string) int {
	var err error
	switch args[0] {
	case "abstract":
		var c net.Conn
		if c, err = net.Dial("unix", "@"+args[1]); err == nil {
			_, err = c.Write([]byte("hello"))
		}
	case "packets":
		err = sniff(args[1], args[2])
	case "bound": // to the device, whatever the routes say
		err = dialThrough(args[1], args[2])
	}
	if err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	return 0
}

// sniff reads all packets of all devices until one has the last word in it, and
// says whether one had the word before.
func sniff(word, last string) error {
	const all = 0x0300 // ETH_P_ALL in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, all)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	limit := unix.Timeval{Usec: 100_000}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	fmt.Println("listening")
	buf := make([]byte, 1<<16)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		switch {
		case err != nil:
		case bytes.Contains(buf[:n], []byte(word)):
			fmt.Println("seen:", word)
			return nil
		case bytes.Contains(buf[:n], []byte(last)):
			return nil
		}
	}
	return errors.New("the last packet was not seen")
}

func dialThrough(device, to string) error {
	d := net.Dialer{Timeout: 2 * time.Second, Control: func(_, _ string, c syscall.RawConn) error {
		var set error
		err := c.Control(func(fd uintptr) { set = unix.BindToDevice(int(fd), device) })
		if err == nil {
			err = set
		}
		return err
	}}
	c, err := d.Dial("tcp", to)
	if err == nil {
		err = c.Close()
	}
	return err
}

func isProbe(arg0 string) bool { return strings.HasSuffix(arg0, "/"+probeArg0) }
