//go:build !linux

package usernet

import "net"

func newSink(c net.Conn) sink { return &copySink{up: c, buf: make([]byte, chunk)} }

func newSource(c net.Conn) source { return &copySource{up: c, buf: make([]byte, chunk)} }
