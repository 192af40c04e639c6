package engine

import (
	"bytes"
	"context"
	"io"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
)

const (
	// logLines is how many of the last lines of a container's log are read.
	logLines = "20"
	// logLimit bounds what is read of them, for lines without an end.
	logLimit = 1 << 20
)

// LastLog is the end of what a container has written, so many bytes at most;
// empty where the engine does not tell.
func LastLog(ctx context.Context, api *client.Client, id string, most int) string {
	logs, err := api.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: logLines})
	if err != nil {
		return ""
	}
	defer func() { _ = logs.Close() }()
	out := NewTail(most)
	var raw bytes.Buffer
	limited := io.TeeReader(io.LimitReader(logs, logLimit), &raw)
	if _, err := stdcopy.StdCopy(out, out, limited); err != nil {
		// A container with a terminal has one stream and no frames.
		out = NewTail(most)
		_, _ = io.Copy(out, &raw)
	}
	return out.String()
}
