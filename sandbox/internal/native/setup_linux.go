package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
)

// Setup says what the sandbox is like.
type Setup struct {
	Root     rootfs.Root `json:"root"`
	Hostname string      `json:"hostname"`
	// Mapped: the user namespace was mapped after the start.
	Mapped bool `json:"mapped,omitempty"`
	// UserNS: the process is root of a user namespace only, and cannot make
	// device nodes.
	UserNS bool `json:"user_ns,omitempty"`
	// Loopback: the network namespace is new, and its loopback device is down.
	Loopback bool `json:"loopback,omitempty"`
	// Mounts are made in their order.
	Mounts []Mount `json:"mounts"`
	// Masked paths appear empty, ReadOnly ones cannot be written; those that
	// are missing stay so.
	Masked   []string `json:"masked"`
	ReadOnly []string `json:"read_only"`
	// ReadOnlyRoot: what is in none of Mounts cannot be written either.
	ReadOnlyRoot bool `json:"read_only_root,omitempty"`
	// Capabilities is the set that is left, one bit for each. What is not in
	// it goes from the bounding set too.
	Capabilities uint64 `json:"capabilities"`
	// Filter is a program for seccomp(2); none for none.
	Filter []Instruction `json:"filter"`
}

// Instruction is one of a classic BPF program (struct sock_filter).
type Instruction = unix.SockFilter

// Mount is one mount of a sandbox.
type Mount struct {
	Target string `json:"target"`         // in the sandbox; made where it is missing
	Type   string `json:"type,omitempty"` // of the file system; empty binds Source
	Source string `json:"source"`
	// Flags of mount(2). Of a bound source only MS_RDONLY, MS_NOSUID, MS_NODEV
	// and MS_NOEXEC are meant, and MS_REC for what is mounted below it.
	Flags uintptr `json:"flags"`
	Data  string  `json:"data,omitempty"`
	// Seal: it becomes read-only when all mounts are made.
	Seal bool `json:"seal,omitempty"`
}

// setupLimit bounds a Setup; planning copies small files of the host into it.
const setupLimit = 256 << 20

// readSetup waits for the outer half. When that is gone nothing comes.
func readSetup() (*Setup, error) {
	f := os.NewFile(SetupFD, "setup")
	data, err := io.ReadAll(io.LimitReader(f, setupLimit))
	err = errors.Join(err, f.Close())
	if err != nil {
		return nil, fmt.Errorf("reading how the sandbox is set up: %w", err)
	}
	if len(data) == 0 {
		return nil, errors.New("the program that wanted the sandbox is gone")
	}
	s := new(Setup)
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("reading how the sandbox is set up: %w", err)
	}
	return s, nil
}
