package guest

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// classes is where kernels show devices by what they are. That of gVisor has no
// directory there for those of networks, and lets nobody make one.
const classes = "/sys/class"

// Types of network devices (if_arp.h).
const (
	ethernetType    = 1
	loopbackType    = 772
	addresslessType = 65534
)

const loopbackMTU = 65536 // bytes, that of Linux

// showNetDevices shows the sandbox's network devices in "/sys/class/net", which nothing
// can write. What is shown is what they are now: a sandbox gets no others later.
func showNetDevices() error {
	devices, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("listing network devices: %w", err)
	}
	others, err := os.ReadDir(classes)
	if err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", classes, "tmpfs", shown, "mode=755"); err != nil {
		return fmt.Errorf("showing network devices: %w", err)
	}
	for _, d := range others {
		if err := os.Mkdir(filepath.Join(classes, d.Name()), 0o755); err != nil {
			return err
		}
	}
	if err := writeNetDevices(filepath.Join(classes, "net"), devices); err != nil {
		return err
	}
	if err := unix.Mount("", classes, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|shown, ""); err != nil {
		return fmt.Errorf("protecting the list of network devices: %w", err)
	}
	return nil
}

// writeNetDevices writes a directory for each device, with those files of Linux (ABI
// document sysfs-class-net) whose content does not change.
func writeNetDevices(dir string, devices []net.Interface) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, d := range devices {
		own := filepath.Join(dir, d.Name)
		if err := os.Mkdir(own, 0o755); err != nil {
			return err
		}
		for name, content := range netDeviceFiles(d) {
			if err := writeFile(filepath.Join(own, name), content+"\n", 0o444); err != nil {
				return err
			}
		}
	}
	return nil
}

func netDeviceFiles(d net.Interface) map[string]string {
	kind, state, carrier, mtu := ethernetType, "down", "0", d.MTU
	address, broadcast := d.HardwareAddr, net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	if d.Flags&net.FlagUp != 0 {
		state, carrier = "up", "1"
	}
	switch {
	case d.Flags&net.FlagLoopback != 0:
		kind, state, mtu = loopbackType, "unknown", cmp.Or(mtu, loopbackMTU)
		address, broadcast = make(net.HardwareAddr, 6), make(net.HardwareAddr, 6)
	case d.Flags&net.FlagPointToPoint != 0: // it has no addresses, and gVisor says that they are 0
		kind, state, address, broadcast = addresslessType, "unknown", nil, nil
	}
	index := strconv.Itoa(d.Index)
	files := map[string]string{
		"addr_len":  strconv.Itoa(len(address)),
		"address":   address.String(),
		"broadcast": broadcast.String(),
		"carrier":   carrier,
		"flags":     fmt.Sprintf("%#x", netDeviceFlags(d.Flags)),
		"ifindex":   index,
		"iflink":    index,
		"operstate": state,
		"type":      strconv.Itoa(kind),
	}
	if mtu > 0 { // gVisor does not know that of a device which is not its own
		files["mtu"] = strconv.Itoa(mtu)
	}
	return files
}

// netDeviceFlags are those of netdevice(7).
func netDeviceFlags(flags net.Flags) (bits int) {
	for _, f := range []struct {
		flag net.Flags
		bit  int
	}{
		{net.FlagUp, unix.IFF_UP}, {net.FlagBroadcast, unix.IFF_BROADCAST}, {net.FlagLoopback, unix.IFF_LOOPBACK},
		{net.FlagPointToPoint, unix.IFF_POINTOPOINT}, {net.FlagRunning, unix.IFF_RUNNING}, {net.FlagMulticast, unix.IFF_MULTICAST},
	} {
		if flags&f.flag != 0 {
			bits |= f.bit
		}
	}
	return bits
}
