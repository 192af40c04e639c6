package gitfetch

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// Protocol is how a repository is reached, as git calls it.
type Protocol string

// The protocols that are spoken. Others are neither encrypted nor sure to be
// the repository that was meant.
const (
	HTTPS Protocol = "https"
	SSH   Protocol = "ssh"
	File  Protocol = "file"
)

var (
	scheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://`)
	// helper is git's spelling of a program that speaks a protocol.
	helper = regexp.MustCompile(`^[A-Za-z0-9+.-]+::`)
	// scp is the spelling "user@host:path": a colon before any slash.
	scp = regexp.MustCompile(`^[^/:]+:`)
)

// CheckURL tells how the repository at a URL would be reached, and refuses what
// is not to be. local allows repositories on this machine: set it only for what
// the user wrote.
func CheckURL(raw string, local bool) (Protocol, error) {
	p, err := protocolOf(raw)
	if err != nil {
		return "", fmt.Errorf("git repository %q: %w", Anonymous(raw), err)
	}
	if p == File && !local {
		return "", fmt.Errorf("git repository %q: it is on this machine, and only the command line, a configuration or a registry file here may name such", raw)
	}
	return p, nil
}

func protocolOf(raw string) (Protocol, error) {
	switch {
	case raw == "":
		return "", errors.New("the URL is empty")
	case strings.HasPrefix(raw, "-"):
		return "", errors.New("the URL begins with a hyphen, which git would take for an option")
	case hasControl(raw):
		return "", errors.New("the URL holds control characters")
	case helper.MatchString(raw):
		return "", errors.New("the URL names a helper program; use https or ssh")
	}
	if m := scheme.FindStringSubmatch(raw); m != nil {
		return ofScheme(m[1], raw)
	}
	if scp.MatchString(raw) {
		return SSH, checkHost(raw[:strings.IndexByte(raw, ':')])
	}
	return File, nil
}

func ofScheme(name, raw string) (Protocol, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", errors.New("it is not a URL")
	}
	switch p := Protocol(strings.ToLower(name)); p {
	case HTTPS, SSH:
		if u.Hostname() == "" {
			return "", errors.New("the URL names no host")
		}
		return p, checkHost(u.Host)
	case File:
		return p, nil
	case "http", "git":
		return "", fmt.Errorf("protocol %s is not encrypted; use https or ssh", p)
	default:
		return "", fmt.Errorf("protocol %s is not spoken; use https or ssh", p)
	}
}

// checkHost refuses names that ssh would take for options.
func checkHost(host string) error {
	name := host[strings.LastIndexByte(host, '@')+1:]
	if strings.HasPrefix(name, "-") || strings.HasPrefix(host, "-") {
		return errors.New("the host's name begins with a hyphen")
	}
	return nil
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// Anonymous is a URL without the password or token that may be in it.
func Anonymous(raw string) string {
	if m := scheme.FindString(raw); m != "" {
		rest := raw[len(m):]
		host, _, _ := strings.Cut(rest, "/")
		if at := strings.LastIndexByte(host, '@'); at >= 0 {
			return m + rest[at+1:]
		}
	}
	return raw
}

// HasCredentials reports whether a URL holds a password or a token.
func HasCredentials(raw string) bool {
	m := scheme.FindString(raw)
	if m == "" || strings.EqualFold(m, "ssh://") {
		return false
	}
	return Anonymous(raw) != raw
}

// CheckCommit refuses what git would not take for a commit, a branch or a tag.
func CheckCommit(commit string) error {
	switch {
	case commit == "":
		return errors.New("the git commit is empty")
	case strings.HasPrefix(commit, "-"):
		return fmt.Errorf("git commit %q begins with a hyphen, which git would take for an option", commit)
	case hasControl(commit), strings.ContainsAny(commit, " ~^:?*[\\+"), strings.Contains(commit, ".."), strings.Contains(commit, "@{"):
		return fmt.Errorf("git commit %q is not a commit id, branch or tag", commit)
	}
	return nil
}

// CheckPath refuses directories that are not in the repository.
func CheckPath(dir string) error {
	if path.IsAbs(dir) {
		return fmt.Errorf("path %q in a git repository must be relative to its root", dir)
	}
	if hasControl(dir) {
		return fmt.Errorf("path %q in a git repository holds control characters", dir)
	}
	for part := range strings.SplitSeq(dir, "/") {
		if part == ".." || strings.EqualFold(part, ".git") {
			return fmt.Errorf("path %q in a git repository must not hold %q", dir, part)
		}
	}
	return nil
}

var fullID = regexp.MustCompile(`^(?:[0-9a-fA-F]{40}|[0-9a-fA-F]{64})$`)

// IsFullID reports whether a commit is named by its whole identifier, so that it
// cannot come to mean another.
func IsFullID(commit string) bool { return fullID.MatchString(commit) }
