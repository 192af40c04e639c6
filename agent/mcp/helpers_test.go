package mcp_test

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/proctor-run/proctor/agent/mcp"
	"github.com/proctor-run/proctor/cube"
)

// Revisions of the protocol: the newest, and that of most clients.
const (
	modern = "2026-07-28"
	legacy = "2025-06-18"
)

func newPlayer() *mcp.Player { return mcp.NewPlayer(mcp.Options{Name: "game", Version: "7"}) }

// offered are two actions, in an order that is not that of the alphabet, and the stop action.
func offered() []cube.ActionSchema {
	return []cube.ActionSchema{
		{Name: "walk", Description: "Walk.", Parameters: cube.Pairs("type", "object",
			"properties", cube.Pairs("to", cube.Pairs("type", "string"), "fast", cube.Pairs("type", "boolean")),
			"required", []string{"to"})},
		{Name: "look", Description: "Look around."},
		cube.StopAction(),
	}
}

// game drives a player: it notes what is done, and answers each action with what it is.
type game struct {
	*mcp.Player

	mu      sync.Mutex
	actions []string
	ended   chan error // what Act returned at the end
}

// start drives a player until it has nothing more to do, and ends the episode then. step
// gives what follows an action, and how the action failed; nil is the usual.
func start(t testing.TB, step func(cube.Action) (*cube.Observation, *cube.StepError)) *game {
	t.Helper()
	g := &game{Player: newPlayer(), ended: make(chan error, 1)}
	if step == nil {
		step = func(a cube.Action) (*cube.Observation, *cube.StepError) {
			return cube.Observe(cube.Text("did " + describe(a))), nil
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go g.drive(ctx, step)
	return g
}

func (g *game) drive(ctx context.Context, step func(cube.Action) (*cube.Observation, *cube.StepError)) {
	obs := cube.Observe(cube.Text("Find the door."))
	for {
		actions, err := g.Act(ctx, obs, offered())
		if err != nil || len(actions) == 0 {
			g.End(nil)
			g.ended <- err
			return
		}
		g.mu.Lock()
		g.actions = append(g.actions, describe(actions[0]))
		g.mu.Unlock()
		if actions[0].Name == cube.StopName {
			g.End(nil)
			g.ended <- nil
			return
		}
		var failed *cube.StepError
		if obs, failed = step(actions[0]); obs == nil {
			g.End(failed)
			g.ended <- nil
			return
		}
	}
}

// done are the actions so far.
func (g *game) done() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.actions)
}

func describe(a cube.Action) string { return a.Name + cube.PythonText(a.Arguments) }

// way is a way to a player, with a revision of the protocol.
type way struct{ name, version string }

var ways = []way{{"stdio", modern}, {"stdio", legacy}, {"http", modern}, {"http", legacy}}

func (w way) String() string { return w.name + "-" + w.version }

// dial connects a client to a player.
func (w way) dial(t testing.TB, p *mcp.Player, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	s, err := w.tryDial(t, p, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (w way) tryDial(t testing.TB, p *mcp.Player, o *sdk.ClientOptions) (*sdk.ClientSession, error) {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "1"}, o)
	s, err := client.Connect(t.Context(), w.transport(t, p), &sdk.ClientSessionOptions{ProtocolVersion: w.version})
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

func (w way) transport(t testing.TB, p *mcp.Player) sdk.Transport {
	t.Helper()
	if w.name == "http" {
		server := httptest.NewServer(p.Handler())
		t.Cleanup(server.Close)
		return &sdk.StreamableClientTransport{Endpoint: server.URL + "/some/where", DisableStandaloneSSE: true}
	}
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- p.ServeStdio(context.Background(), fromClient, toClient)
		_ = toClient.Close()
	}()
	t.Cleanup(func() {
		_ = toServer.Close()
		_ = fromServer.Close()
		if err := <-served; err != nil {
			t.Errorf("serving a client that hung up: %v", err)
		}
	})
	return &sdk.IOTransport{Reader: fromServer, Writer: toServer}
}

// call calls a tool, and returns the texts of the answer and whether it is an error.
func call(t testing.TB, s *sdk.ClientSession, name string, args any) (string, bool) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("calling %s: %v", name, err)
	}
	return texts(res.Content), res.IsError
}

func texts(contents []sdk.Content) string {
	var all []string
	for _, c := range contents {
		switch c := c.(type) {
		case *sdk.TextContent:
			all = append(all, c.Text)
		case *sdk.ImageContent:
			all = append(all, "<"+c.MIMEType+">")
		}
	}
	return strings.Join(all, "|")
}

// wants fails where a call was answered otherwise.
func wants(t testing.TB, s *sdk.ClientSession, name string, args any, want string, failed bool) {
	t.Helper()
	if got, isError := call(t, s, name, args); got != want || isError != failed {
		t.Errorf("%s %v: %q, error %v; want %q, error %v", name, args, got, isError, want, failed)
	}
}

const refused = "The task has ended: no more actions are possible."

var errGone = errors.New("the agent is gone")
