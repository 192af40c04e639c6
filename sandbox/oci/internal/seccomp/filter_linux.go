// Package seccomp is the list of system calls that container engines allow by
// default, as a program for seccomp(2).
package seccomp

import (
	"cmp"
	"slices"

	"golang.org/x/sys/unix"
)

// What happens to a call.
const (
	allow  = uint32(unix.SECCOMP_RET_ALLOW)
	refuse = uint32(unix.SECCOMP_RET_ERRNO | unix.EPERM)
	// unknown is what a kernel without the call says, so that programs do
	// without it.
	unknown = uint32(unix.SECCOMP_RET_ERRNO | unix.ENOSYS)
)

// Offsets in struct seccomp_data.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArg0   = 16 // its lower half on machines that are little-endian
)

// x32 marks calls of the x32 ABI, which no distribution uses.
const x32 = 0x40000000

// cloneNamespaces are the flags of clone(2) that make namespaces.
const cloneNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

// Default is the program for commands without further capabilities than those
// of container engines. What is not on the list fails as not permitted, what
// came later than the list as unknown.
func Default() []unix.SockFilter {
	first, second := branch(0), branch(1)
	program := []unix.SockFilter{load(offsetArch)}
	program = append(program, unlessEqual(machines[0], len(first))...)
	program = append(program, first...)
	program = append(program, unlessEqual(machines[1], len(second))...)
	program = append(program, second...)
	return append(program, ret(unix.SECCOMP_RET_KILL_PROCESS))
}

// span is what happens to the calls from a number to the next span's.
type span struct {
	from uint32
	code []unix.SockFilter // ends with a return
}

// branch decides about the calls of one kind of programs.
func branch(kind int) []unix.SockFilter {
	byNumber := map[uint32][]unix.SockFilter{}
	for name, numbers := range calls {
		if n := numbers[kind]; n >= 0 {
			byNumber[uint32(n)] = decision(name)
		}
	}
	var spans []span
	for n := range newest[kind] + 1 {
		code, ok := byNumber[n]
		if !ok {
			code = []unix.SockFilter{ret(refuse)}
		}
		spans = append(spans, span{n, code})
	}
	spans = append(spans, span{newest[kind] + 1, []unix.SockFilter{ret(unknown)}})
	for n, code := range byNumber { // those of ARM alone lie apart
		if n > newest[kind] {
			spans = append(spans, span{n, code}, span{n + 1, []unix.SockFilter{ret(unknown)}})
		}
	}
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return append([]unix.SockFilter{load(offsetNumber)}, search(merge(spans))...)
}

// merge joins neighbours that do the same. Of spans that begin at the same
// number the one that does more counts: the other ends the span before.
func merge(spans []span) []span {
	var out []span
	for _, s := range spans {
		if n := len(out); n > 0 && out[n-1].from == s.from {
			if s.code[len(s.code)-1].K != unknown {
				out[n-1] = s
			}
			continue
		}
		if n := len(out); n > 0 && slices.Equal(out[n-1].code, s.code) {
			continue
		}
		out = append(out, s)
	}
	return out
}

// decision is what happens to a call of that name.
func decision(name string) []unix.SockFilter {
	switch name {
	case "clone3":
		// Its flags lie in memory, where a filter cannot look; libc uses clone.
		return []unix.SockFilter{ret(unknown)}
	case "io_uring_setup", "io_uring_enter", "io_uring_register":
		return []unix.SockFilter{ret(unknown)} // programs fall back to epoll
	case "clone":
		return []unix.SockFilter{load(offsetArg0), {Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: cloneNamespaces, Jt: 1}, ret(allow), ret(refuse)}
	case "socket":
		return socket()
	case "personality":
		// Linux and its old name for uname, each also asked for alone.
		return []unix.SockFilter{
			load(offsetArg0), equal(0, 5), equal(0x8, 4), equal(0x20000, 3), equal(0x20008, 2), equal(0xffffffff, 1), ret(refuse), ret(allow),
		}
	}
	return []unix.SockFilter{ret(allow)}
}

// socketFamilies is the first number that is no address family of the list.
const socketFamilies = 46

// refusedFamilies are the address families that container engines refuse: AF_VSOCK
// would reach the host of a virtual machine, AF_ALG is a way into the kernel's
// cryptography that no command needs, and new kernels do not have the others any more.
var refusedFamilies = []uint32{
	unix.AF_AX25, unix.AF_IPX, unix.AF_APPLETALK, unix.AF_NETROM, unix.AF_ROSE, unix.AF_DECnet, unix.AF_ECONET, unix.AF_ATMSVC,
	unix.AF_IRDA, unix.AF_WANPIPE, unix.AF_ISDN, unix.AF_CAIF, unix.AF_ALG, unix.AF_VSOCK,
}

// socket decides by the address family.
func socket() []unix.SockFilter {
	code := []unix.SockFilter{load(offsetArg0), {Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: socketFamilies, Jt: uint8(len(refusedFamilies) + 1)}}
	for i, family := range refusedFamilies {
		code = append(code, equal(family, uint8(len(refusedFamilies)-i)))
	}
	return append(code, ret(allow), ret(refuse))
}

// search finds the span of the call whose number was loaded.
func search(spans []span) []unix.SockFilter {
	if len(spans) == 1 {
		return spans[0].code
	}
	half := len(spans) / 2
	low, high := search(spans[:half]), search(spans[half:])
	at := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: spans[half].from}
	if len(low) <= 255 {
		at.Jt = uint8(len(low))
		return slices.Concat([]unix.SockFilter{at}, low, high)
	}
	at.Jf = 1 // over the long jump
	return slices.Concat([]unix.SockFilter{at, {Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(low))}}, low, high)
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func ret(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}

// equal jumps ahead when what was loaded is value.
func equal(value uint32, ahead uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jt: ahead}
}

// unlessEqual jumps over the next instructions when what was loaded is not
// value.
func unlessEqual(value uint32, over int) []unix.SockFilter {
	return []unix.SockFilter{equal(value, 1), {Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(over)}}
}
