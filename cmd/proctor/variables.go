package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/dotenv"
	"github.com/proctor-run/proctor/job"
)

// maxEnvFile bounds what is read of --env-file, in bytes.
const maxEnvFile = 1 << 20

// loadEnvFile puts the variables of a file over those of the process, and
// returns their names.
func loadEnvFile(env *Env, path string) (map[string]bool, error) {
	if path == "" {
		return nil, nil
	}
	text, err := bounded.ReadFile(path, maxEnvFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, usageErrorf("Env file not found: %s", path)
	case err != nil:
		return nil, usageErrorf("--env-file: %w", err)
	case !utf8.Valid(text):
		return nil, usageErrorf("reading --env-file %q: it is not UTF-8", path)
	}
	vars, warnings := dotenv.Parse(string(text), env.Lookup)
	for _, w := range warnings {
		_, _ = fmt.Fprintf(env.Stderr, "proctor: warning: %s: %s\n", path, w)
	}
	names := map[string]bool{}
	for _, v := range vars {
		env.Environ = append(env.Environ, v.Name+"="+v.Value)
		names[v.Name] = true
	}
	return names, nil
}

// confirmVariables shows which variables of this host the tasks will load, and
// asks; those of --env-file are meant for the tasks and need no question. A
// variable that is needed and not set ends the run before it starts.
func confirmVariables(ctx context.Context, env *Env, p *job.Prepared, fromFile map[string]bool, yes bool) error {
	var missing, loaded []job.HostVariable
	for _, v := range p.HostVariables(env.Lookup) {
		switch {
		case v.Missing:
			missing = append(missing, v)
		case v.Set && !fromFile[v.Name]:
			loaded = append(loaded, v)
		}
	}
	if len(missing) > 0 {
		_, _ = fmt.Fprintln(env.Stderr, "Missing Environment Variables")
		for _, v := range missing {
			_, _ = fmt.Fprintf(env.Stderr, "  %s  (%s, %s)\n", clean(v.Name), v.Phase, clean(v.Task))
		}
		return withHint(usageErrorf("the tasks need %s that this machine does not set", count(len(missing), "variable")), "export them, or give them in a file with --env-file")
	}
	in, isFile := env.Stdin.(*os.File)
	if yes || len(loaded) == 0 || !isFile || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	_, _ = fmt.Fprintln(env.Stderr, "Tasks in this run will load these from your environment:")
	for _, v := range loaded {
		_, _ = fmt.Fprintf(env.Stderr, "  %s  (%s, %s)\n", clean(v.Name), v.Phase, clean(v.Task))
	}
	_, _ = fmt.Fprint(env.Stderr, "Proceed? (Y/n): ")
	ctx, stop := interruptible(ctx, env)
	defer stop()
	answer, err := readLine(ctx, in)
	if err != nil {
		_, _ = fmt.Fprintln(env.Stderr)
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "n", "no":
		return errQuiet(exitOK)
	}
	return nil
}

// readLine reads one line, or gives up when ctx ends. A read of a terminal
// cannot be called off: its goroutine then ends with the process.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	type reading struct {
		line string
		err  error
	}
	read := make(chan reading, 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		read <- reading{line, err}
	}()
	select {
	case r := <-read:
		if r.err != nil && r.line == "" {
			return "", errors.New("aborted: no answer")
		}
		return r.line, nil
	case <-ctx.Done():
		return "", errInterrupted
	}
}
