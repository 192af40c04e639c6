package bounded

import "io"

// largePiece is how much is copied at a time: in sandboxes with a kernel of their own calls
// of the system are slow, and so is waking who is at the other end.
const largePiece = 256 << 10

// Copy copies what is left of src, about size bytes, in large pieces.
func Copy(dst io.Writer, src io.Reader, size int64) (int64, error) {
	buf := make([]byte, min(max(size, 0)+1, largePiece))
	return io.CopyBuffer(onlyWriter{dst}, src, buf) //nolint:wrapcheck // it names what the two do
}

// onlyWriter hides ReadFrom, which has a buffer of its own.
type onlyWriter struct{ io.Writer }
