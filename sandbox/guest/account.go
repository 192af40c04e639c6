package guest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// account is who a command runs as.
type account struct {
	uid, gid uint32
	groups   []uint32
	home     string
}

// maxAccountFile bounds what is read of /etc/passwd and /etc/group; the files
// belong to the sandbox.
const maxAccountFile = 4 << 20

// resolveUser finds "name", "uid", "name:group" or "uid:gid" in the sandbox's
// own files. A name is looked for before a number is taken as one. Numbers
// that no entry has are accepted: the group is then 0 and the home "/".
// Supplementary groups are those that list the user, unless a group is named.
func resolveUser(user string, open func(string) (io.ReadCloser, error)) (account, error) {
	name, group, grouped := strings.Cut(user, ":")
	if name == "" {
		name = "0"
	}
	a := account{home: "/"}
	login, found := "", false
	err := eachLine(open, "/etc/passwd", 7, func(f []string) bool {
		uid, gid, ok := numbers(f[2], f[3])
		if !ok || (f[0] != name && (f[2] != name || found)) {
			return true
		}
		a.uid, a.gid, login, found = uid, gid, f[0], true
		if f[5] != "" {
			a.home = f[5]
		}
		return f[0] != name // the entry of that name is final
	})
	if err != nil {
		return account{}, err
	}
	if !found {
		uid, err := strconv.ParseUint(name, 10, 32)
		if err != nil {
			return account{}, fmt.Errorf("unknown user %q", name)
		}
		a.uid = uint32(uid)
	}
	if grouped && group != "" {
		a.gid, err = resolveGroup(group, open)
		return a, err
	}
	err = eachLine(open, "/etc/group", 4, func(f []string) bool {
		if gid, _, ok := numbers(f[2], "0"); ok && login != "" && slices.Contains(strings.Split(f[3], ","), login) {
			a.groups = append(a.groups, gid)
		}
		return true
	})
	return a, err
}

func resolveGroup(group string, open func(string) (io.ReadCloser, error)) (uint32, error) {
	var gid uint32
	found := false
	err := eachLine(open, "/etc/group", 4, func(f []string) bool {
		n, _, ok := numbers(f[2], "0")
		if ok && f[0] == group {
			gid, found = n, true
		}
		return !found
	})
	if err != nil || found {
		return gid, err
	}
	n, err := strconv.ParseUint(group, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("unknown group %q", group)
	}
	return uint32(n), nil
}

func numbers(a, b string) (x, y uint32, ok bool) {
	n, err := strconv.ParseUint(a, 10, 32)
	m, err2 := strconv.ParseUint(b, 10, 32)
	return uint32(n), uint32(m), err == nil && err2 == nil
}

// eachLine calls f with the fields of each line that has n of them, until f
// returns false. A missing file has no lines.
func eachLine(open func(string) (io.ReadCloser, error), name string, n int, f func([]string) bool) error {
	file, err := open(name)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	defer func() { _ = file.Close() }()
	sc := bufio.NewScanner(io.LimitReader(file, maxAccountFile))
	sc.Buffer(nil, maxAccountFile)
	for sc.Scan() {
		if fields := strings.Split(sc.Text(), ":"); len(fields) == n && !f(fields) {
			return nil
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}
