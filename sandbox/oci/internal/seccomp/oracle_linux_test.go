package seccomp

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"testing"

	profile "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// differences from the default profile of Docker, with their reasons.
var differences = map[string]map[string]string{
	"amd64": {
		"io_uring_setup": asked, "io_uring_enter": asked, "io_uring_register": asked,
		"recv": missing, "send": missing, "riscv_hwprobe": missing,
	},
	"arm64": {
		"io_uring_setup": asked, "io_uring_enter": asked, "io_uring_register": asked,
		"fadvise64_64":     "is arm_fadvise64_64 on ARM",
		"sync_file_range2": "is arm_sync_file_range on ARM",
		"alarm":            missing, "epoll_ctl_old": missing, "epoll_wait_old": missing, "get_thread_area": missing, "ipc": missing,
		"riscv_hwprobe": missing, "select": missing, "set_thread_area": missing, "socketcall": missing, "time": missing,
		"uretprobe": missing, "utime": missing, "waitpid": missing,
	},
}

const (
	asked   = "refused as unknown, so that programs fall back to epoll"
	missing = "is no call of the architecture, nor of its 32 bits"
)

// given are the capabilities of commands for which the profile has rules.
var given = []string{"CAP_SYS_CHROOT"}

// TestAsDocker compares what happens to each call, for the first arguments that
// rules look at, with Docker's default profile.
func TestAsDocker(t *testing.T) {
	t.Parallel()
	arguments := []uint32{0x20000, 0x20008, 0x40000, 0xffffffff}
	for n := range uint32(64) { // families of sockets
		arguments = append(arguments, n)
	}
	for bit := range 32 { // flags of clone
		arguments = append(arguments, 1<<bit)
	}
	for arch, all := range differences {
		reasons := maps.Clone(all)
		ours, theirs := tableOf(t, arch), rulesOf(arch)
		names := slices.Clone(ours)
		for name := range theirs {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			differs := slices.ContainsFunc(arguments, func(arg uint32) bool {
				got := refuse
				if slices.Contains(ours, name) {
					got = run(t, decision(name), 0, 0, arg)
				}
				return got != answer(theirs[name], uint64(arg))
			})
			if reason := reasons[name]; differs != (reason != "") {
				t.Errorf("%s: %s differs: %t, reason %q", arch, name, differs, reason)
			}
			delete(reasons, name)
		}
		for name := range reasons {
			t.Errorf("%s: neither has %s", arch, name)
		}
	}
}

// tableOf reads the names of the table for an architecture, whichever this one is.
func tableOf(t *testing.T, arch string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "calls_linux_"+arch+".go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		name, err := strconv.Unquote(pair.Key.(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
		return false
	})
	return names
}

// rulesOf are the rules of the profile for an architecture, by call. Kernels are as
// new as rules want them.
func rulesOf(arch string) map[string][]specs.LinuxSyscall {
	rules := map[string][]specs.LinuxSyscall{}
	is := func(c string) bool { return slices.Contains(given, c) }
	for _, rule := range profile.DefaultProfile().Syscalls {
		if f := rule.Includes; f != nil && (!slices.ContainsFunc(f.Caps, is) && len(f.Caps) > 0 || !slices.Contains(f.Arches, arch) && len(f.Arches) > 0) {
			continue
		}
		if f := rule.Excludes; f != nil && (slices.ContainsFunc(f.Caps, is) || slices.Contains(f.Arches, arch)) {
			continue
		}
		for _, name := range rule.Names {
			rules[name] = append(rules[name], rule.LinuxSyscall)
		}
	}
	return rules
}

// answer is what the rules of a call do with its first argument.
func answer(rules []specs.LinuxSyscall, arg uint64) uint32 {
	for _, rule := range rules {
		matches := !slices.ContainsFunc(rule.Args, func(a specs.LinuxSeccompArg) bool {
			switch a.Op {
			case specs.OpEqualTo:
				return arg != a.Value
			case specs.OpLessThan:
				return arg >= a.Value
			case specs.OpMaskedEqual:
				return arg&a.Value != a.ValueTwo
			default:
				return true
			}
		})
		switch {
		case matches && rule.Action == specs.ActAllow:
			return allow
		case matches && rule.Action == specs.ActErrno && *rule.ErrnoRet == uint(unix.ENOSYS):
			return unknown
		}
	}
	return refuse
}
