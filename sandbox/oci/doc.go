// Package oci runs sandboxes without a daemon: proctor itself prepares a root
// file system, an OCI bundle and the namespaces, and an OCI runtime runs it.
//
// Two backends share the machinery. "sandbox" puts a writable layer on the
// layers of an image that package image has unpacked. "host" puts it on the
// host's own root file system, of which it shows the programs and their settings
// and what Options.Show names, without credentials; it isolates what commands
// write, but shows them what the machine has installed, and is meant for
// demonstrations, task authors and trusted agents.
//
// Begin with [New]. A program that uses the package must call [Reexec] first
// thing in main, because the helper that sets up user namespaces is the program
// itself, executed again. gVisor is a program of its own, see package runsc.
//
// # How a sandbox is made
//
// Each sandbox has one directory below the state directory. It begins with
// owner.json, which names the process that the sandbox belongs to, so that
// [Backend.Collect] finds what a killed process left. All mounts are made in a
// mount namespace of the sandbox's own, which the kernel removes with the last
// process in it: no mount is ever visible on the host. As root a thread of the
// calling process enters the namespace and starts the runtime; otherwise a
// helper process does so in a user namespace, where it is root. Runtime native
// is no program: the guest supervisor is started in all namespaces at once and
// makes the sandbox around itself, see package native. The runtime is killed by
// the kernel when the calling process dies, and the guest supervisor inside ends
// when its standard input does.
//
// # Network
//
// Mode public is a namespace of the sandbox's own with a TUN device, whose
// packets a TCP/IP stack in this process carries over sockets of the host
// (package usernet). As root the thread that enters the mount namespace makes
// the device; otherwise the helper does, and sends it to its caller. gVisor
// passes TCP and UDP sockets through to that namespace. Where there is no
// /dev/net/tun, public is the host's network namespace, without raw sockets.
// Mode no-network is an empty namespace with a loopback device. So is mode
// allowlist, with an egress proxy in the calling process (package egress) and a
// relay inside. A sandbox whose policy can be switched has the proxy and the
// device of mode public, behind which everything is refused unless it is public.
//
// # What the runtimes enforce
//
// gVisor runs commands on a kernel of its own; with native, runc and crun they
// use the host's kernel with the capabilities, masked paths and refused system
// calls that container engines use by default. Limits of CPU, memory and
// processes need native, runc or crun, root and a writable cgroup file system,
// see [Backend.Capabilities].
package oci
