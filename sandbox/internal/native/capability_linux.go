package native

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// drop gives up all capabilities but those of the Setup, in all threads. What is
// in keep stays with the process alone: what it executes does not get it.
func (s *Setup) drop(keep uint64) error {
	last := lastCapability()
	for c := uintptr(0); c <= last; c++ {
		if s.Capabilities&(1<<c) != 0 {
			continue
		}
		held, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if err != nil {
			return fmt.Errorf("reading the bounding set: %w", err)
		}
		if held == 0 {
			continue // the outer half has dropped it
		}
		if err := allThreads(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0); err != nil {
			return fmt.Errorf("dropping capability %d: %w", c, err)
		}
	}
	if err := allThreads(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("dropping ambient capabilities: %w", err)
	}
	held, err := permitted()
	if err != nil {
		return err
	}
	return hold((s.Capabilities | keep) & held)
}

// Drop gives up one capability, in all threads and for whatever is executed.
func Drop(capability uintptr) error {
	if err := allThreads(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, capability, 0); err != nil {
		return fmt.Errorf("dropping capability %d: %w", capability, err)
	}
	held, err := permitted()
	if err != nil {
		return err
	}
	return hold(held &^ (1 << capability))
}

// hold keeps no capability but some that the process has.
func hold(have uint64) error {
	header, data := capabilitySets(have, 0)
	if err := allThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(data)), 0); err != nil { //nolint:gosec // the call's arguments
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}

// permitted are the capabilities that the thread may use.
func permitted() (uint64, error) {
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(header, &data[0]); err != nil {
		return 0, fmt.Errorf("reading capabilities: %w", err)
	}
	return uint64(data[0].Permitted) | uint64(data[1].Permitted)<<32, nil
}

// capabilitySets are the arguments of capset(2).
func capabilitySets(have, inheritable uint64) (*unix.CapUserHeader, *unix.CapUserData) {
	data := [2]unix.CapUserData{}
	for i := range data {
		shift := 32 * i
		data[i].Effective, data[i].Permitted = uint32(have>>shift), uint32(have>>shift)
		data[i].Inheritable = uint32(inheritable >> shift)
	}
	return &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]
}

// allThreads makes a system call in every thread: the kernel keeps credentials
// for each.
func allThreads(trap, a1, a2, a3 uintptr) error {
	_, _, errno := syscall.AllThreadsSyscall(trap, a1, a2, a3)
	switch {
	case errno == syscall.ENOTSUP:
		return errors.New("the supervisor is linked with the C library; build it with CGO_ENABLED=0")
	case errno != 0:
		return os.NewSyscallError("in all threads", errno)
	}
	return nil
}

// LimitThread prepares the calling thread, which belongs to root, for starting
// the inner half: the capabilities that are not in keep go from the bounding
// set, but reach the started program nevertheless, which drops them for good.
// The thread must not be used for anything else.
func LimitThread(keep uint64) error {
	last := lastCapability()
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(header, &data[0]); err != nil {
		return fmt.Errorf("reading capabilities: %w", err)
	}
	for i := range data {
		data[i].Inheritable = data[i].Permitted
	}
	if err := unix.Capset(header, &data[0]); err != nil {
		return fmt.Errorf("passing capabilities on: %w", err)
	}
	for c := uintptr(0); c <= last; c++ {
		if keep&(1<<c) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return fmt.Errorf("dropping capability %d from the bounding set: %w", c, err)
		}
	}
	return nil
}

func lastCapability() uintptr {
	data, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if n, convErr := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && convErr == nil {
		return uintptr(n)
	}
	return unix.CAP_LAST_CAP
}
