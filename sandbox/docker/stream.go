package docker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/proctor-run/proctor/internal/bounded"
)

// The streams of the engine's multiplexed format (Engine API, attach): each
// frame has the stream's number, three unused bytes and a 32-bit length.
const (
	frameHeader  = 8
	frameStdin   = 0
	frameStdout  = 1
	frameStderr  = 2
	frameFailure = 3
)

// demultiplex copies frames to the two streams until the source ends. Memory
// stays bounded whatever lengths the source claims.
func demultiplex(src io.Reader, stdout, stderr io.Writer) error {
	r := bufio.NewReaderSize(src, 64<<10)
	var head [frameHeader]byte
	buf := make([]byte, 64<<10)
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			if err == io.EOF {
				return nil
			}
			return fmt.Errorf("reading a frame of output: %w", err)
		}
		var dst io.Writer
		switch head[0] {
		case frameStdin, frameStdout:
			dst = stdout
		case frameStderr:
			dst = stderr
		case frameFailure:
			text, _ := io.ReadAll(io.LimitReader(r, 4<<10))
			return fmt.Errorf("the engine reports: %s", bytes.TrimSpace(text))
		default:
			return fmt.Errorf("output frame of unknown stream %d", head[0])
		}
		size := int64(binary.BigEndian.Uint32(head[4:]))
		if n, err := bounded.CopyBuffer(dst, io.LimitReader(r, size), buf); err != nil {
			return fmt.Errorf("reading a frame of output: %w", err)
		} else if n < size {
			return fmt.Errorf("output frame ends after %d of %d bytes: %w", n, size, io.ErrUnexpectedEOF)
		}
	}
}
