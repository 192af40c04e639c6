package network

import (
	"strings"

	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
	"github.com/proctor-run/proctor/sandbox/oci/internal/hostfile"
)

// Identity is the tree of the files by which a sandbox finds itself and others.
func Identity(hostname string, kind Kind, below rootfs.Attributes) rootfs.Tree {
	hosts := "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
	resolver := ""
	switch kind {
	case None:
	case Own:
		hosts += hostsElsewhere(hostfile.Small("/etc/hosts"))
		resolver = resolverInside(hostfile.Small("/etc/resolv.conf"))
	case Host:
		// The network is the host's, so are the ways to resolve names.
		if h := hostfile.Small("/etc/hosts"); h != "" {
			hosts = strings.TrimRight(h, "\n") + "\n"
		}
		resolver = hostfile.Small("/etc/resolv.conf")
	}
	t := rootfs.Tree{}
	t.File("/etc/hosts", 0o644, []byte(hosts+"127.0.1.1\t"+hostname+"\n"), below)
	t.File("/etc/resolv.conf", 0o644, []byte(resolver), below)
	t.File("/etc/hostname", 0o644, []byte(hostname+"\n"), below)
	return t
}
