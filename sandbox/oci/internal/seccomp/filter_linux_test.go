package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// run interprets the program as the kernel does. It knows the instructions that
// the package uses, and no others.
func run(t *testing.T, program []unix.SockFilter, arch, number, arg0 uint32) uint32 {
	t.Helper()
	var a uint32
	for pc := 0; pc < len(program); pc++ {
		in := program[pc]
		jump := func(yes bool) {
			if yes {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = map[uint32]uint32{offsetNumber: number, offsetArch: arch, offsetArg0: arg0}[in.K]
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(in.K)
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(a == in.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(a >= in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(a&in.K != 0)
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		default:
			t.Fatalf("unknown instruction %+v", in)
		}
	}
	t.Fatal("the program has no end")
	return 0
}

// TestDefault: every number of either kind of programs gets what the list says.
func TestDefault(t *testing.T) {
	t.Parallel()
	program := Default()
	if len(program) > unix.BPF_MAXINSNS {
		t.Fatalf("%d instructions", len(program))
	}
	for kind, arch := range machines {
		want := map[uint32]uint32{}
		for name, numbers := range calls {
			if n := numbers[kind]; n >= 0 {
				want[uint32(n)] = run(t, decision(name), arch, uint32(n), 0)
			}
		}
		for n := range newest[kind] + 1 {
			if _, listed := want[n]; !listed {
				want[n] = refuse
			}
		}
		for n, action := range want {
			if got := run(t, program, arch, n, 0); got != action {
				t.Errorf("kind %d, call %d: %#x, want %#x", kind, n, got, action)
			}
		}
		for _, n := range []uint32{newest[kind] + 1, newest[kind] + 100, x32, x32 + 1, 0xffffffff} {
			if got := run(t, program, arch, n, 0); got != unknown {
				t.Errorf("kind %d, call %#x: %#x, want unknown", kind, n, got)
			}
		}
	}
	if got := run(t, program, 1, 0, 0); got != unix.SECCOMP_RET_KILL_PROCESS {
		t.Errorf("another machine's call: %#x", got)
	}
}

func TestDefaultArguments(t *testing.T) {
	t.Parallel()
	program := Default()
	number := func(name string) uint32 { return uint32(calls[name][0]) }
	for _, c := range []struct {
		name string
		arg  uint32
		want uint32
	}{
		{"clone", uint32(unix.SIGCHLD), allow},
		{"clone", unix.CLONE_VM | unix.CLONE_VFORK | uint32(unix.SIGCHLD), allow},
		{"clone", unix.CLONE_NEWUSER | uint32(unix.SIGCHLD), refuse},
		{"clone", unix.CLONE_NEWNET, refuse},
		{"clone3", 0, unknown},
		{"io_uring_setup", 0, unknown},
		{"socket", unix.AF_INET, allow},
		{"socket", unix.AF_XDP, allow},
		{"socket", unix.AF_VSOCK, refuse}, {"socket", unix.AF_ALG, refuse}, {"socket", unix.AF_AX25, refuse}, {"socket", socketFamilies, refuse},
		{"personality", 0, allow}, {"personality", 0xffffffff, allow}, {"personality", 0x20008, allow}, {"personality", 0x40000, refuse},
		{"ptrace", 0, allow},
		{"chroot", 0, allow},
	} {
		if got := run(t, program, machines[0], number(c.name), c.arg); got != c.want {
			t.Errorf("%s(%#x): %#x, want %#x", c.name, c.arg, got, c.want)
		}
	}
	for _, n := range []uint32{
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_BPF,
		unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_REBOOT,
		unix.SYS_FSOPEN, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_QUOTACTL, unix.SYS_SWAPON, unix.SYS_SYSLOG, unix.SYS_ACCT,
	} {
		if got := run(t, program, machines[0], n, 0); got != refuse {
			t.Errorf("call %d: %#x, want refused", n, got)
		}
	}
}
