package docker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

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
	defer func() { _ = sb.Destroy(context.WithoutCancel(ctx)) }()
	status, err := sb.Exec(ctx, sandbox.Command{Shell: "echo hello", Stdout: os.Stdout})
	fmt.Println(status.Code, err)
}

// What a compose project comes to can be seen without an engine.
func ExampleBackend_ProjectJSON() {
	dir, err := os.MkdirTemp("", "project")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "docker-compose.yaml")
	if err := os.WriteFile(file, []byte("services: {main: {hostname: '${NAME}'}}\n"), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	backend, err := docker.New(docker.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := backend.ProjectJSON(context.Background(), sandbox.Spec{
		Image:   sandbox.Image{Ref: "debian:12"},
		Compose: &sandbox.Compose{Project: "trial", Dir: dir, Files: []string{file}, Env: []string{"NAME=here"}},
	})
	var project struct {
		Name     string
		Services map[string]struct {
			Image, Hostname string
			Command         []string
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &project)
	}
	fmt.Println(project.Name, project.Services["main"], err)
	// Output: trial {debian:12 here [sh -c sleep infinity]} <nil>
}
