// Package mcp offers the actions of a stepped task as tools of the Model Context
// Protocol, for agents that bring their own loop.
//
// A [Player] stands between the two: whoever drives the episode calls its Act, as of any
// [cube.Agent], and a client calls tools. One call is one turn, and is answered with what
// the agent would see next.
//
//	p := mcp.NewPlayer(mcp.Options{Name: "task", Version: "1"})
//	go http.Serve(listener, p.Handler())
//	// A driver plays the episode with p as its agent. When the agent is gone:
//	p.Leave(nil)
//	// When the episode has ended:
//	p.End(nil)
//
// Clients learn of the task what an agent does: the first observation is the server's
// instructions and the prompt "task", the actions are its tools. Rewards, infos and stack
// traces are not shown, and nothing resets or scores the task.
//
// Revisions 2024-11-05 to 2025-11-25 and 2026-07-28 of the protocol are served, by HTTP
// ([Player.Handler]) and by lines ([Player.ServeStdio]). Of HTTP there are no sessions:
// all clients of a player play one episode.
package mcp
