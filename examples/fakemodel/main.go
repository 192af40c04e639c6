// Command fakemodel serves models that follow a script, so that agents can be tried
// without a provider, a key or a bill. It speaks the protocols of OpenAI (chat completions
// and responses), Anthropic and Gemini.
//
//	go run ./examples/fakemodel [-listen ADDRESS] [-key KEY] SCRIPT.json
//
// The first line of its output is its address. Package llm/llmtest tells what a script is.
// On an interrupt it writes what each model and key used, and ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/llm/llmtest"
)

// maxScript bounds the script.
const maxScript = 64 << 20

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "fakemodel:", err)
		}
		stop()
		os.Exit(2) //nolint:gocritic // stop has been called
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("fakemodel", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "127.0.0.1:0", "address to listen at; port 0 is any free one")
	key := flags.String("key", "", "key that requests must have; empty for any, or none")
	if err := flags.Parse(args); err != nil {
		return err //nolint:wrapcheck // it is for the person who wrote the flags
	}
	if flags.NArg() != 1 {
		return errors.New("give the file of one script")
	}
	data, err := bounded.ReadFile(flags.Arg(0), maxScript)
	if err != nil {
		return err
	}
	script, err := llmtest.ParseScript(data)
	if err != nil {
		return fmt.Errorf("%s: %w", flags.Arg(0), err)
	}
	model := &llmtest.Server{Answer: script.Answer, Key: *key, Forget: true}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	if _, err := fmt.Fprintf(stdout, "http://%s\n", listener.Addr()); err != nil {
		return fmt.Errorf("telling the address: %w", err)
	}
	err = serve(ctx, listener, model)
	report(stderr, model.Counts())
	return err
}

// serve serves until ctx ends; what is being answered then is not waited for.
func serve(ctx context.Context, listener net.Listener, model http.Handler) error {
	server := &http.Server{Handler: model, ReadHeaderTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// report writes what was used. Keys are told apart by their last characters.
func report(w io.Writer, counts map[llmtest.Account]llmtest.Count) {
	var lines []string
	for a, c := range counts {
		key := a.Key
		if len(key) > 4 {
			key = "…" + key[len(key)-4:]
		}
		lines = append(lines, fmt.Sprintf("model %q key %q: requests %d, answers %d, prompt tokens %d, completion tokens %d",
			a.Model, key, c.Requests, c.Answers, c.Usage.Prompt, c.Usage.Completion))
	}
	slices.Sort(lines)
	if len(lines) > 0 {
		_, _ = fmt.Fprintln(w, strings.Join(lines, "\n"))
	}
}
