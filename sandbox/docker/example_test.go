package docker_test

import (
	"context"
	"fmt"
	"os"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
)

func Example() {
	ctx := context.Background()
	backend, err := docker.New(docker.Options{Getenv: os.Getenv})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := backend.Check(ctx); err != nil {
		fmt.Println(err) // says what is missing, and the fix
		return
	}
	sb, err := backend.Create(ctx, sandbox.Spec{Name: "hello", Image: sandbox.Image{Ref: "debian:12"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sb.Destroy(context.WithoutCancel(ctx))
	status, err := sb.Exec(ctx, sandbox.Command{Shell: "echo hello", Stdout: os.Stdout})
	fmt.Println(status.Code, err)
}
