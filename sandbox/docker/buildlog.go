package docker

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/moby/moby/api/types/jsonstream"
	"google.golang.org/protobuf/encoding/protowire"
)

// maxBuildMessage bounds one message of a build's output.
const maxBuildMessage = 16 << 20

// followBuild reads a build's messages until their end, copies the text to log
// and reports each step. The engine reports a failed build as a message.
func followBuild(body io.Reader, log io.Writer, step func(string)) error {
	lines := bufio.NewReaderSize(body, 64<<10)
	dec := json.NewDecoder(&boundedMessages{r: lines})
	ended := false
	var failure error
	for !ended {
		var m jsonstream.Message
		err := dec.Decode(&m)
		switch {
		case errors.Is(err, io.EOF):
			ended = true
		case err != nil:
			return fmt.Errorf("reading the build's output: %w", err)
		case m.Error != nil:
			failure = m.Error
		case m.ID == "moby.buildkit.trace" && m.Aux != nil:
			var trace []byte // base64 in JSON
			if json.Unmarshal(*m.Aux, &trace) == nil {
				traceText(trace, log, step)
			}
		case m.Stream != "":
			_, _ = io.WriteString(log, m.Stream)
			if text := strings.TrimSpace(m.Stream); strings.HasPrefix(text, "Step ") {
				step(text)
			}
		case m.Status != "":
			step(strings.TrimSpace(m.Status + " " + m.ID))
		}
	}
	return failure
}

// boundedMessages fails when the engine sends a message without end.
type boundedMessages struct {
	r    io.Reader
	line int
}

func (b *boundedMessages) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	for _, c := range p[:n] {
		b.line++
		if c == '\n' {
			b.line = 0
		}
	}
	if b.line > maxBuildMessage {
		return 0, fmt.Errorf("a message of more than %d bytes", maxBuildMessage)
	}
	return n, err
}

// Fields of BuildKit's StatusResponse, its Vertex and its VertexLog (BuildKit
// control API, moby.buildkit.v1).
const (
	responseVertexes = 1
	responseLogs     = 3
	vertexName       = 3
	vertexStarted    = 5
	vertexError      = 7
	logMessage       = 4
)

// traceText writes the names, logs and errors of a trace. What is no trace is
// ignored: it is only text for people.
func traceText(trace []byte, log io.Writer, step func(string)) {
	eachField(trace, func(number protowire.Number, value []byte) {
		switch number {
		case responseVertexes:
			var name, failure string
			started := false
			eachField(value, func(n protowire.Number, v []byte) {
				switch n {
				case vertexName:
					name = string(v)
				case vertexStarted:
					started = true
				case vertexError:
					failure = string(v)
				}
			})
			switch {
			case failure != "":
				_, _ = fmt.Fprintf(log, "%s: %s\n", name, failure)
			case started:
				_, _ = fmt.Fprintln(log, name)
				step(name)
			}
		case responseLogs:
			eachField(value, func(n protowire.Number, v []byte) {
				if n == logMessage {
					_, _ = log.Write(v)
				}
			})
		}
	})
}

// eachField calls f with the length-delimited fields of a protobuf message.
func eachField(message []byte, f func(protowire.Number, []byte)) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		if kind == protowire.BytesType {
			value, n := protowire.ConsumeBytes(message)
			if n < 0 {
				return
			}
			f(number, value)
			message = message[n:]
			continue
		}
		n = protowire.ConsumeFieldValue(number, kind, message)
		if n < 0 {
			return
		}
		message = message[n:]
	}
}
