package build

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxAccounts bounds what is read of an image's account files, in bytes.
const maxAccounts = 1 << 20

// owner is who files belong to.
type owner struct{ UID, GID int }

// findOwner reads --chown and USER: "user", "user:group", names or numbers.
// Without a group it is the user's first one, and for a number the same number
// (Dockerfile reference, "COPY --chown").
func findOwner(t tree, spec string) (owner, error) {
	name, group, hasGroup := strings.Cut(spec, ":")
	var o owner
	fields, err := account(t, "etc/passwd", 4, name)
	switch {
	case err != nil:
		return o, err
	case fields != nil:
		if o.UID, err = id(fields[2]); err != nil {
			return o, fmt.Errorf("user %q: %w", name, err)
		}
		if o.GID, err = id(fields[3]); err != nil {
			return o, fmt.Errorf("user %q: %w", name, err)
		}
	default:
		if o.UID, err = id(name); err != nil {
			return o, fmt.Errorf("user %q: not in the image's /etc/passwd", name)
		}
		o.GID = o.UID
	}
	if !hasGroup || group == "" {
		return o, nil
	}
	fields, err = account(t, "etc/group", 3, group)
	switch {
	case err != nil:
		return o, err
	case fields != nil:
		o.GID, err = id(fields[2])
	default:
		o.GID, err = id(group)
	}
	if err != nil {
		return o, fmt.Errorf("group %q: not in the image's /etc/group", group)
	}
	return o, nil
}

func id(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err
}

// account finds the line of a name; nil when there is none. Numbers are no names.
func account(t tree, file string, fields int, name string) ([]string, error) {
	if _, err := id(name); err == nil || name == "" {
		return nil, nil
	}
	real, info, err := resolve(t, file)
	if err != nil || info == nil {
		return nil, err
	}
	f, err := t.Open(real)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(io.LimitReader(f, maxAccounts))
	for lines.Scan() {
		if line := strings.Split(lines.Text(), ":"); len(line) >= fields && line[0] == name {
			return line, nil
		}
	}
	return nil, nil
}
