package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// device is a character device that a sandbox may open, or all of a major number.
type device struct{ major, minor int32 }

// anyMinor stands for all minor numbers.
const anyMinor = -1

// allowed are the devices of every container (OCI runtime specification, "Default
// Devices") and pseudo-terminals. Nodes of others can be made and cannot be opened.
var allowed = []device{{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}, {5, 2}, {136, anyMinor}}

// GuardsDevices reports whether groups refuse to open the nodes of other devices:
// by their controller with version 1, by a program of the kernel with version 2.
func GuardsDevices() bool {
	if !unified(Root) {
		return writable(filepath.Join(Root, "devices"))
	}
	return guardLoads()
}

func guardLoads() bool {
	_, err := guard()
	return err == nil
}

// deviceFiles allow devices with version 1.
func deviceFiles() [][2]string {
	files := [][2]string{{"devices.deny", "a"}, {"devices.allow", "c *:* m"}, {"devices.allow", "b *:* m"}}
	for _, d := range allowed {
		minor := "*"
		if d.minor != anyMinor {
			minor = strconv.Itoa(int(d.minor))
		}
		files = append(files, [2]string{"devices.allow", fmt.Sprintf("c %d:%s rwm", d.major, minor)})
	}
	return files
}

// guard is the program that groups of version 2 have for their devices. It stays
// loaded, because it is the same for all.
var guard = sync.OnceValues(loadGuard)

// instruction is one of the kernel's extended BPF (struct bpf_insn).
type instruction struct {
	code   uint8
	regs   uint8 // the destination in the lower half, the source in the upper one
	offset int16
	value  int32
}

const (
	result   = 0 // registers
	argument = 1
	access   = 2
	kind     = 3
	major    = 4
	minor    = 5

	// What is done with a device (struct bpf_cgroup_dev_ctx, BPF_DEVCG_*): the upper
	// half of the first word. The lower one is the kind of device.
	makesNode = 1
	character = 2
)

// guardProgram allows what deviceFiles do (BPF_PROG_TYPE_CGROUP_DEVICE).
func guardProgram() []instruction {
	load := func(to uint8, offset int16) instruction {
		return instruction{code: unix.BPF_LDX | unix.BPF_MEM | unix.BPF_W, regs: to | argument<<4, offset: offset}
	}
	const (
		equal    = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		unequal  = unix.BPF_JMP | unix.BPF_JNE | unix.BPF_K
		move     = unix.BPF_ALU64 | unix.BPF_MOV | unix.BPF_K
		moveFrom = unix.BPF_ALU64 | unix.BPF_MOV | unix.BPF_X
		mask     = unix.BPF_ALU64 | unix.BPF_AND | unix.BPF_K
		shift    = unix.BPF_ALU64 | unix.BPF_RSH | unix.BPF_K
		leave    = unix.BPF_JMP | unix.BPF_EXIT
	)
	program := []instruction{
		load(access, 0), load(major, 4), load(minor, 8),
		{code: moveFrom, regs: kind | access<<4},
		{code: mask, regs: kind, value: 0xffff},
		{code: shift, regs: access, value: 16},
		{code: move, regs: result, value: 1},
		{code: unequal, regs: access, value: makesNode, offset: 1},
		{code: leave},
		{code: move, regs: result, value: 0},
		{code: equal, regs: kind, value: character, offset: 1},
		{code: leave},
		{code: move, regs: result, value: 1},
	}
	for _, d := range allowed {
		if d.minor == anyMinor {
			program = append(program, instruction{code: unequal, regs: major, value: d.major, offset: 1}, instruction{code: leave})
			continue
		}
		program = append(program,
			instruction{code: unequal, regs: major, value: d.major, offset: 2},
			instruction{code: unequal, regs: minor, value: d.minor, offset: 1},
			instruction{code: leave})
	}
	return append(program, instruction{code: move, regs: result, value: 0}, instruction{code: leave})
}

// loadGuard gives the kernel the program (bpf(2), BPF_PROG_LOAD). An error is that
// the kernel does not take programs, or not from this user.
func loadGuard() (*os.File, error) {
	program, license := guardProgram(), []byte("Apache-2.0\x00")
	request := struct {
		kind, count      uint32
		program, license unsafe.Pointer
		_                [4]uint32 // no log
		_, _             uint32    // no version, no flags
	}{
		kind: unix.BPF_PROG_TYPE_CGROUP_DEVICE, count: uint32(len(program)),
		program: unsafe.Pointer(&program[0]), license: unsafe.Pointer(&license[0]),
	}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&request)), unsafe.Sizeof(request))
	if errno != 0 {
		return nil, fmt.Errorf("loading the program that guards devices: %w", errno)
	}
	return os.NewFile(fd, "guard of devices"), nil
}

// attachGuard has a group of version 2 guarded, besides what guards the groups above
// it. That ends with the group.
func attachGuard(group *os.File) error {
	program, err := guard()
	if err != nil {
		return err
	}
	request := struct{ group, program, kind, flags uint32 }{
		uint32(group.Fd()), uint32(program.Fd()), unix.BPF_CGROUP_DEVICE, unix.BPF_F_ALLOW_MULTI,
	}
	if _, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_ATTACH, uintptr(unsafe.Pointer(&request)), unsafe.Sizeof(request)); errno != 0 {
		return fmt.Errorf("guarding the devices of a control group: %w", errno)
	}
	return nil
}
