package guest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/proctor-run/proctor/sandbox/internal/frames"
)

// Upload unpacks a tar stream below dir, see sandbox.Sandbox. It reads from
// tar in the calling goroutine and does not interrupt a Read.
func (c *Client) Upload(ctx context.Context, dir string, tar io.Reader) error {
	k, err := c.begin(ctx, reqUpload, []byte(dir), cancel)
	if err != nil {
		return fmt.Errorf("uploading to %q: %w", dir, err)
	}
	defer c.end(k)
	readErr := c.pour(k, tar)
	for {
		f, err := c.next(k)
		if err != nil {
			return fmt.Errorf("uploading to %q: %w", dir, errors.Join(readErr, err))
		}
		if f.Type != repDone {
			continue
		}
		_, err = c.result(ctx, f)
		if readErr != nil {
			err = readErr
		}
		if err != nil {
			return fmt.Errorf("uploading to %q: %w", dir, err)
		}
		return nil
	}
}

// pour sends the stream as far as the supervisor wants it, and returns the
// error of the reader.
func (c *Client) pour(k *call, tar io.Reader) error {
	p := frames.NewPacket(frames.MaxFiles)
	for {
		n := k.credit.Take(frames.MaxFiles, c.done, k.abandoned)
		if n == 0 {
			return nil // the reply says why
		}
		m, err := tar.Read(p.Space(n))
		if m > 0 {
			k.credit.GiveBack(n - m)
			if c.w.SendPacket(reqData, k.id, p, m) != nil {
				return nil
			}
		} else {
			k.credit.GiveBack(n + frames.Cost)
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = c.w.Send(reqDataEnd, k.id, nil)
			return nil
		case err != nil:
			_ = c.w.Send(reqDataEnd, k.id, []byte("the stream broke off"))
			return err
		}
	}
}

// Own makes a user of the sandbox, by numbers, the owner of a directory and of
// everything in it. Links are not followed. What is not there is no error.
func (c *Client) Own(ctx context.Context, dir string, uid, gid int) error {
	if _, err := c.ask(ctx, reqOwn, ownRequest{dir, uid, gid}.encode(), cancel); err != nil {
		return fmt.Errorf("changing the owner of %q: %w", dir, err)
	}
	return nil
}

// Download writes path as a tar stream, see sandbox.Sandbox.
func (c *Client) Download(ctx context.Context, path string, tar io.Writer) error {
	k, err := c.begin(ctx, reqDownload, []byte(path), cancel)
	if err != nil {
		return fmt.Errorf("downloading %q: %w", path, err)
	}
	defer c.end(k)
	var writeErr error
	for {
		f, err := c.next(k)
		if err != nil {
			return fmt.Errorf("downloading %q: %w", path, errors.Join(writeErr, err))
		}
		if f.Type == repDone {
			_, err := c.result(ctx, f)
			if writeErr != nil {
				err = writeErr
			}
			if err != nil {
				return fmt.Errorf("downloading %q: %w", path, err)
			}
			return nil
		}
		if writeErr == nil {
			if _, writeErr = tar.Write(f.Payload); writeErr != nil {
				_ = c.send(reqCancel, k.id, nil)
			}
		}
		c.consumed(k, f)
	}
}
