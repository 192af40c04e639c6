package guest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/guest"
)

// A program that can be its own supervisor: the other copy of it, told by its
// environment, calls guest.Main. Inside a sandbox that copy is process 1.
func ExampleDial() {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{"GUEST_TEST_SERVE=child"}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		panic(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	ctx := context.Background()
	c, err := guest.Dial(ctx, stdout, stdin, guest.Options{
		Build: "test build", User: fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid()),
	})
	if err != nil {
		panic(err)
	}
	st, err := c.Exec(ctx, sandbox.Command{Argv: []string{"sh", "-c", "echo hello; exit 3"}, Stdout: os.Stdout})
	fmt.Println(st.Code, err)
	_ = c.Close() // ends the supervisor and everything it has started
	fmt.Println(cmd.Wait())
	// Output:
	// hello
	// 3 <nil>
	// <nil>
}
