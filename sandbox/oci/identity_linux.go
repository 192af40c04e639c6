package oci

import (
	"io"
	"os"
	"strings"

	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
)

// identityLimit bounds the host files that are shown in sandboxes.
const identityLimit = 1 << 20

// identity is the tree of the files by which a sandbox finds itself and others.
func identity(hostname string, network networkKind, below rootfs.Attributes) rootfs.Tree {
	hosts := "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
	resolver := ""
	switch network {
	case noNetwork:
	case ownNetwork:
		hosts += hostsElsewhere(readSmall("/etc/hosts"))
		resolver = resolverInside(readSmall("/etc/resolv.conf"))
	case hostNetwork:
		// The network is the host's, so are the ways to resolve names.
		if h := readSmall("/etc/hosts"); h != "" {
			hosts = strings.TrimRight(h, "\n") + "\n"
		}
		resolver = readSmall("/etc/resolv.conf")
	}
	t := rootfs.Tree{}
	t.File("/etc/hosts", 0o644, []byte(hosts+"127.0.1.1\t"+hostname+"\n"), below)
	t.File("/etc/resolv.conf", 0o644, []byte(resolver), below)
	t.File("/etc/hostname", 0o644, []byte(hostname+"\n"), below)
	return t
}

// readSmall returns a host file's content, or nothing when it cannot be read.
func readSmall(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, identityLimit))
	if err != nil {
		return ""
	}
	return string(data)
}
