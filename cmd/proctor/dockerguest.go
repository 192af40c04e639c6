package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
)

// dockerGuest returns how the docker backend finds the program that carries
// connections out of containers: the guest program that a release has beside
// proctor, or proctor itself. Nil means that there is none: proctor itself is
// no program for containers but on Linux.
func dockerGuest(env *Env) func(context.Context) (string, error) {
	self, err := os.Executable()
	if err == nil {
		if beside := guestBeside(self); beside != "" {
			return func(context.Context) (string, error) { return beside, nil }
		}
	}
	if runtime.GOOS != "linux" {
		return nil
	}
	return func(ctx context.Context) (string, error) {
		if err != nil {
			return "", fmt.Errorf("finding the program: %w", err)
		}
		dirs, err := findDirectories(env)
		if err != nil {
			return "", err
		}
		return staticProgram(ctx, env, self, dirs.cache)
	}
}
