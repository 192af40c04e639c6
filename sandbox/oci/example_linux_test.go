package oci_test

import (
	"context"
	"fmt"
	"os"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci"
)

// A program that uses the package first lets it do its helpers' work. It also
// has to call guest.Main when its own base name is oci.GuestArg0, unless
// Options.Guest names another program.
func Example() {
	if code, handled := oci.Reexec(os.Args); handled {
		os.Exit(code)
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Println(err)
		return
	}
	backend, err := oci.New(oci.Options{OwnRoot: true, StateDir: "/var/lib/example", Executable: self, Build: "1.0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	box, err := backend.Create(ctx, sandbox.Spec{Name: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = box.Destroy(ctx) }()
	status, err := box.Exec(ctx, sandbox.Command{Shell: "id; uname -a", Stdout: os.Stdout})
	fmt.Println(status.Code, err)
}

// What a person is told about the runtimes of a machine.
func ExampleRuntimes() {
	for _, r := range []oci.RuntimeStatus{
		{Name: oci.RuntimeGVisor, Available: true},
		{Name: oci.RuntimeRunc, Reason: "not installed", Fix: "install the package \"runc\""},
	} {
		if r.Available {
			fmt.Println(r.Name, "can be used")
			continue
		}
		fmt.Printf("%s: %s; %s\n", r.Name, r.Reason, r.Fix)
	}
	// Output:
	// gvisor can be used
	// runc: not installed; install the package "runc"
}
