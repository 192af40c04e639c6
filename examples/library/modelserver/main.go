// Command modelserver lets programs of this machine use a model without its key, until so
// many tokens are used. It prints the variables by which they find it and, when it is
// interrupted, what they used.
//
//	OPENAI_API_KEY=… modelserver openai/gpt-5-mini 100000
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/gateway"
	"github.com/proctor-run/proctor/llm/providers"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: modelserver PROVIDER/MODEL TOKENS")
	}
	tokens, err := strconv.ParseInt(os.Args[2], 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	client := &llm.Client{Dial: providers.Dial, Lookup: os.LookupEnv}
	err = serve(ctx, os.Stdout, client, os.Args[1], llm.Budget{Tokens: tokens})
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// serve serves the model until ctx ends.
func serve(ctx context.Context, w io.Writer, models llm.Router, model string, budget llm.Budget) error {
	route, err := models.Route(model, llm.Options{})
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	g := &gateway.Gateway{
		Model: model, Route: route, Protocols: llm.Protocols(model, llm.Options{}), Key: gateway.NewKey(),
		Meter: llm.NewMeter(llm.OfJob, budget, nil),
	}
	for _, assignment := range g.Vars(nil, "http://"+l.Addr().String()) {
		_, _ = fmt.Fprintln(w, "export", assignment)
	}
	g.Open()
	server := &http.Server{Handler: g, ReadHeaderTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() {
		g.Close()
		_ = server.Close()
	})
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	g.Close() // until it has, not all calls are counted
	used := g.Meter.Spent()
	_, _ = fmt.Fprintf(w, "%d calls, %d tokens in, %d out\n", used.Calls, used.Prompt, used.Completion)
	return nil
}
