// Package httpserver makes servers of HTTP for clients that are not trusted.
package httpserver

import (
	"io"
	"log"
	"net/http"
	"time"
)

// Bounds of what a client can keep open.
const (
	headerTime  = time.Minute
	idleTime    = 10 * time.Minute
	headerBytes = 64 << 10
)

// New returns a server of h. How long a request may take as a whole is h's business. What
// the server has to say is about its clients, and is not logged.
func New(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		ErrorLog: log.New(io.Discard, "", 0),
	}
}
