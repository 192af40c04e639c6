package bounded

import "io"

// largePiece is how much is copied at a time: in sandboxes with a kernel of their own calls
// of the system are slow, and so is waking who is at the other end.
const largePiece = 256 << 10

// Copy copies what is left of src, about size bytes, in large pieces.
func Copy(dst io.Writer, src io.Reader, size int64) (int64, error) {
	return CopyBuffer(dst, src, make([]byte, min(max(size, 0)+1, largePiece)))
}

// CopyBuffer is [io.CopyBuffer] that uses its buffer whatever the two can do by themselves:
// what they do has buffers of its own.
func CopyBuffer(dst io.Writer, src io.Reader, buf []byte) (int64, error) {
	return io.CopyBuffer(onlyWriter{dst}, onlyReader{src}, buf) //nolint:wrapcheck // it is what the two say
}

type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)
