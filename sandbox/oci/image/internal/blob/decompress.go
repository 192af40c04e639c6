package blob

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// The magic numbers of compressed layers. Media types are not asked: they are
// often wrong, and no name in a tar begins like this.
var (
	magicGzip = []byte{0x1f, 0x8b}
	magicZstd = []byte{0x28, 0xb5, 0x2f, 0xfd}
	magicXz   = []byte{0xfd, '7', 'z', 'X', 'Z', 0}
)

// Decompress undoes the compression of a layer or another archive, gzip or zstd;
// what has neither passes as it is. The result does not close r,
// and reads r to its end when it is read to its own.
func Decompress(r io.Reader) (plain io.ReadCloser, compressed bool, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	magic, err := in.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, fmt.Errorf("reading the first bytes: %w", err)
	}
	switch {
	case bytes.HasPrefix(magic, magicGzip):
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, false, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		return z, true, nil
	case isZstd(magic):
		// One goroutine less per layer, and memory bounded by the largest
		// window that common encoders use.
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, false, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		return z.IOReadCloser(), true, nil
	case bytes.HasPrefix(magic, magicXz):
		return nil, false, fmt.Errorf("%w: compressed with xz, expected gzip, zstd or none", ErrMalformed)
	}
	return io.NopCloser(in), false, nil
}

// maxWindow bounds the memory for what zstd refers back to.
const maxWindow = 128 << 20

// isZstd knows also the skippable frames that a seekable zstd file may begin with.
func isZstd(magic []byte) bool {
	skippable := len(magic) >= 4 && magic[0]&0xf0 == 0x50 && bytes.Equal(magic[1:4], []byte{0x2a, 0x4d, 0x18})
	return bytes.HasPrefix(magic, magicZstd) || skippable
}
