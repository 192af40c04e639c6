package mcp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/internal/httpserver"
)

// HTTPServer is a server of the player's tools at one path: whoever does not know it reaches
// nothing.
func (p *Player) HTTPServer(path string) *http.Server {
	mux := http.NewServeMux()
	mux.Handle(path, p.Handler())
	return httpserver.New(mux)
}

// Server lets a client that is no part of a trial play one task. It is used once.
type Server struct {
	Options Options
	// Listener takes connections of HTTP, for the tools at Path.
	Listener net.Listener
	Path     string
	// In and Out are lines of JSON, where Listener is nil.
	In  io.Reader
	Out io.Writer
	// Ready is called when the task can be played; it may be nil.
	Ready func()

	begun, ready sync.Once
	player       *Player
	http         *http.Server  // nil for lines
	stop         func()        // ends serving lines
	over         chan struct{} // closed when nobody is served any more
}

// errPlayed is the error of a second episode.
var errPlayed = errors.New("a client plays one episode, and this one has been played")

// EntryName is the name of the agent of [Server.Entry].
const EntryName = "mcp"

// Entry is the agent that plays what the client asks for.
func (s *Server) Entry() agent.Entry {
	return agent.Entry{
		Name: EntryName, Summary: "a client of the Model Context Protocol that has connected to this program",
		Stepped: func(agent.Config) (cube.Agent, error) {
			made := false
			s.begun.Do(func() { made = true })
			if !made {
				return nil, errPlayed
			}
			s.player, s.over = NewPlayer(s.Options), make(chan struct{})
			return &client{s}, nil
		},
	}
}

// client is the agent.
type client struct{ *Server }

var _ agent.Finisher = (*client)(nil)

// Act begins to serve, and waits for the client's next call.
func (c *client) Act(ctx context.Context, obs *cube.Observation, actions []cube.ActionSchema) ([]cube.Action, error) {
	c.ready.Do(func() { //nolint:contextcheck // it serves for longer than a turn takes
		c.serve()
		if c.Ready != nil {
			c.Ready()
		}
	})
	return c.player.Act(ctx, obs, actions)
}

// serve serves until Close, or until the client of lines hangs up.
func (s *Server) serve() {
	if s.Listener != nil {
		s.http = s.player.HTTPServer(s.Path)
		go func() {
			defer close(s.over)
			err := s.http.Serve(s.Listener)
			if errors.Is(err, http.ErrServerClosed) {
				err = nil
			}
			s.player.Leave(err)
		}()
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() {
		defer close(s.over)
		s.player.Leave(s.player.ServeStdio(ctx, s.In, s.Out))
	}()
}

// Finish refuses further calls. The task is evaluated meanwhile.
func (c *client) Finish(_ context.Context, failed *cube.StepError) error {
	c.player.End(failed)
	return nil
}

// Close ends the server when its client has hung up, at the latest after a time.
func (s *Server) Close(limit time.Duration) {
	if s.http == nil && s.stop == nil { // it never served
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s.player.End(nil)
	if s.http != nil {
		_ = s.http.Shutdown(ctx)
		_ = s.http.Close()
		<-s.over
		return
	}
	select {
	case <-s.over:
	case <-ctx.Done():
	}
	s.stop()
}
