package blob

import (
	"context"
	"fmt"
	"io"
)

// WithContext returns a reader of r that stops when a context ends, with its cause.
func WithContext(ctx context.Context, r io.Reader) io.Reader { return &contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}

// Bound returns a reader of r that ends a stream of more than limit bytes with
// ErrLimit.
func Bound(r io.Reader, limit int64) io.Reader {
	return &boundedReader{r: r, left: limit, limit: limit}
}

type boundedReader struct {
	r           io.Reader
	left, limit int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		var one [1]byte
		if n, err := b.r.Read(one[:]); n == 0 {
			return 0, err
		}
		return 0, fmt.Errorf("%w: more than %d bytes", ErrLimit, b.limit)
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	return n, err
}

// Count returns a reader of r that reports to count, unless that is nil, how many
// bytes pass.
func Count(r io.Reader, count func(int)) io.Reader { return &counter{r, count} }

type counter struct {
	r     io.Reader
	count func(int)
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if n > 0 && c.count != nil {
		c.count(n)
	}
	return n, err
}
