package rootplan

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// listed are the paths of the host that a sandbox gets, as patterns of path.Match,
// with all that lies below them but for what is masked. Everything else is kept from
// it: what people put on a machine beside its system is theirs.
var listed = slices.Concat(
	// Programs, with their libraries and data.
	[]string{"/usr", "/bin", "/sbin", "/lib*", "/nix", "/gnu", "/etc/static"},
	// Who is who, and how the C library looks it up; of the shadow files the names.
	etc("passwd", "group", "shadow", "gshadow", "nsswitch.conf", "subuid", "subgid", "login.defs", "adduser.conf", "deluser.conf", "default/useradd"),
	// The network's names; what is the machine's own of it is replaced.
	etc("hosts", "hostname", "resolv.conf", "host.conf", "gai.conf", "networks", "services", "protocols", "rpc", "ethertypes", "netconfig"),
	// Dynamic linking, and which of several programs a name means.
	etc("ld.so.*", "alternatives", "binfmt.d"),
	// Who is trusted in TLS and by package managers: certificates and public keys.
	etc("ssl", "ca-certificates", "ca-certificates.conf", "pki", "crypto-policies", "gss"),
	// Time, language and what system this is.
	etc("localtime", "timezone", "adjtime", "locale.*", "default/locale", "os-release", "*-release", "*_version", "issue", "issue.net", "lsb-release"),
	// Shells, terminals and editors.
	etc("profile", "profile.d", "bash.bashrc", "bash_completion.d", "bashrc", "zsh", "inputrc", "skel", "shells", "terminfo", "vim", "emacs", "manpath.config", "groff"),
	// Kinds of files, fonts and markup.
	etc("mime.types", "magic", "magic.mime", "fonts", "sgml", "xml", "papersize", "ImageMagick-*"),
	// Languages, as their packages are set up.
	etc("python*", "perl", "java*", ".java", "R", "php*", "ruby*", "ghc", "julia", "lua", "nodejs", "maven/logging", "openmpi", "gdb", "gprofng.rc"),
	// Package managers. Their passwords are masked.
	etc("apt", "dpkg", "debconf.conf", "ucf.conf", "apk", "rpm", "dnf/dnf.conf", "pacman.conf", "update-motd.d"),
	// Rules of logins and limits, which su and cron's kin ask, and of file systems.
	etc("pam.conf", "pam.d", "security", "securetty", "mtab", "mke2fs.conf", "xattr.conf"),
	// What package managers know to be installed. Their caches would be much to read.
	[]string{
		"/var/lib/dpkg", "/var/lib/apt", "/var/lib/rpm", "/var/lib/pacman", "/var/lib/pam", "/var/lib/python", "/var/lib/ucf",
		"/var/lib/ca-certificates-java", "/var/lib/xml-core", "/var/lib/sgml-base", "/var/lib/shells.state", "/var/cache/debconf/templates.dat",
	},
)

// emptied are directories that programs expect and find empty.
var emptied = []string{
	"/boot", "/opt", "/srv", "/etc/opt", "/etc/default", "/etc/init.d", "/etc/cron.d", "/etc/cron.daily", "/etc/logrotate.d", "/etc/systemd", "/etc/xdg",
	"/etc/ssh", "/etc/X11", "/etc/apparmor.d", "/etc/tmpfiles.d", "/etc/modprobe.d", "/etc/sysctl.d", "/etc/kernel", "/etc/dbus-1",
	"/var/cache", "/var/cache/apt", "/var/cache/debconf", "/var/cache/man", "/var/cache/ldconfig", "/var/cache/fontconfig",
	"/var/lib/misc", "/var/lib/dbus", "/var/lib/systemd", "/var/lib/man-db", "/var/local", "/var/opt", "/var/spool", "/var/www", "/var/games",
}

func etc(names ...string) []string {
	paths := make([]string, len(names))
	for i, n := range names {
		paths[i] = "/etc/" + n
	}
	return paths
}

// selection is a list of patterns, each of which names paths and all below them.
type selection []string

// whole reports whether a path lies at or below a named one.
func (s selection) whole(name string) bool {
	return slices.ContainsFunc(s, func(pattern string) bool {
		n := strings.Count(pattern, "/")
		f := strings.SplitN(name, "/", n+2)
		if len(f) <= n {
			return false
		}
		ok, _ := path.Match(pattern, strings.Join(f[:n+1], "/")) // the patterns are correct
		return ok
	})
}

// partly reports whether a named path lies below a path.
func (s selection) partly(name string) bool {
	n := strings.Count(name, "/")
	return slices.ContainsFunc(s, func(pattern string) bool {
		f := strings.Split(pattern, "/")
		if len(f) <= n+1 {
			return false
		}
		ok, _ := path.Match(strings.Join(f[:n+1], "/"), name)
		return ok
	})
}

// inside are the patterns that name a path or what lies below it.
func (s selection) inside(name string) selection {
	n := strings.Count(name, "/")
	var in selection
	for _, pattern := range s {
		one := selection{pattern}
		if one.partly(name) || strings.Count(pattern, "/") == n && one.whole(name) {
			in = append(in, pattern)
		}
	}
	return in
}

// others are the paths at or below a directory that are not selected, without those
// that lie below others of them. The directory itself is not selected.
func (s selection) others(files fs.FS, dir string) []string {
	var r remains
	for _, pattern := range s {
		r = append(r, strings.Split(pattern[1:], "/"))
	}
	if dir != "/" {
		for part := range strings.SplitSeq(dir[1:], "/") {
			r, _ = r.enter(part)
		}
	}
	return r.others(files, dir)
}

// remains are what is left of the patterns that match a directory: the parts for the
// names below it, at least one each.
type remains [][]string

// enter is what remains for what lies below a name. The name is selected if a pattern
// ends with it.
func (r remains) enter(name string) (below remains, selected bool) {
	for _, parts := range r {
		if ok := parts[0] == name; !ok {
			if ok, _ = path.Match(parts[0], name); !ok { // the patterns are correct
				continue
			}
		}
		if len(parts) == 1 {
			return nil, true
		}
		below = append(below, parts[1:])
	}
	return below, false
}

func (r remains) others(files fs.FS, dir string) []string {
	list, _ := fs.ReadDir(files, fsName(dir)) // what cannot be read is not shown either
	var out []string
	for _, d := range list {
		name := path.Join(dir, d.Name())
		below, selected := r.enter(d.Name())
		switch {
		case selected:
		case d.IsDir() && len(below) > 0:
			out = append(out, below.others(files, name)...)
		case d.Type() == fs.ModeSymlink && len(below) > 0: // what it leads to is selected by itself, or is not
		default:
			out = append(out, name)
		}
	}
	return out
}

// keys are names below home directories that are never shown: what is there opens
// other machines.
var keys = []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".pgpass", ".password-store", ".vault-token"}

// machine are directories of the running machine, with its engines' sockets.
var machine = selection{"/proc", "/sys", "/dev", "/run", "/var/run"}

// showable resolves the paths that the caller wants shown beside what is listed.
// Those that hold what must stay hidden, as masks say, are refused.
func showable(files fs.ReadLinkFS, show, masks []string) (selection, error) {
	never := slices.Concat(machine, selection(secret))
	for _, m := range masks {
		if r, ok := resolve(files, m); ok {
			never = append(never, escapePattern(r))
		}
	}
	var out selection
	for _, name := range show {
		if !path.IsAbs(name) || path.Clean(name) == "/" {
			return nil, fmt.Errorf("%q cannot be shown: want the absolute path of a file or directory", name)
		}
		name = path.Clean(name)
		to, ok := resolve(files, name)
		if !ok {
			return nil, fmt.Errorf("%q cannot be shown: there is no such file on this machine", name)
		}
		key := slices.ContainsFunc(strings.Split(to, "/"), func(part string) bool { return slices.Contains(keys, part) })
		if to == "/" || key || never.whole(to) || never.whole(name) {
			return nil, fmt.Errorf("%q cannot be shown: it holds keys, passwords, jobs, tasks or sockets of this machine", name)
		}
		out = append(out, escapePattern(to), escapePattern(name))
	}
	return out, nil
}

// escapePattern makes a pattern that matches a path alone.
func escapePattern(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

// unlisted are the paths that are hidden because nothing names them.
func unlisted(files fs.FS, show selection) []string {
	return slices.Concat(selection(listed), selection(replaced), show).others(files, "/")
}
