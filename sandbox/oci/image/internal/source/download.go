package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
)

// Bounds of one download.
const (
	// maxMismatches: a proxy may damage content once; twice it is the source.
	maxMismatches = 2
	// worthwhile is the progress after which a broken connection counts as the
	// first again, so that large layers survive bad networks.
	worthwhile = 1 << 20
)

// remoteLayer is a layer in a registry.
type remoteLayer struct {
	repo *repository
	desc v1.Descriptor
}

func (l remoteLayer) Size() int64 { return l.desc.Size }

func (l remoteLayer) Estimate() (download, disk int64) { return compressed(l.desc.Size) }

func (l remoteLayer) Origin() any { return l.repo.repo.Name() }

// Open downloads the layer to a temporary file and verifies it there, so that
// nothing unverified is unpacked and a connection that breaks costs only what
// had not arrived.
func (l remoteLayer) Open(ctx context.Context, count func(int)) (Stream, error) {
	f, err := l.repo.scratch("blob-*")
	if err != nil {
		return nil, fmt.Errorf("downloading layer %s: %w", l.desc.Digest, err)
	}
	d := &download{layer: l, file: f, count: count}
	err = d.run(ctx)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("downloading layer %s: %w", l.desc.Digest, err), f.Close(), os.Remove(f.Name()))
	}
	return &blobFile{f}, nil
}

// blobFile is a downloaded and verified layer; closing removes it.
type blobFile struct{ *os.File }

func (*blobFile) Check() error { return nil }

func (b *blobFile) Close() error { return errors.Join(b.File.Close(), os.Remove(b.Name())) }

// download fetches one blob, resuming where a connection broke.
type download struct {
	layer    remoteLayer
	file     *os.File
	count    func(int)
	verifier *blob.Verifier
	have     int64 // bytes in file, all of them hashed
}

func (d *download) run(ctx context.Context) error {
	if err := d.restart(); err != nil {
		return err
	}
	mismatches, attempt := 0, 1
	for {
		before := d.have
		err := d.fetch(ctx)
		if err == nil {
			if err = d.verifier.Check("layer"); err == nil {
				return nil
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, wrong := errors.AsType[*blob.DigestError](err); wrong {
			if mismatches++; mismatches == maxMismatches {
				return err
			}
			if err := d.restart(); err != nil {
				return err
			}
			continue
		}
		row, again := d.layer.repo.retrier.forError(err)
		if d.have-before >= worthwhile {
			attempt = 1
		}
		if !again || attempt >= row.Attempts {
			return err
		}
		attempt++
		if err := d.layer.repo.retrier.wait(ctx, row, attempt, nil, err.Error()); err != nil {
			return err
		}
	}
}

func (d *download) restart() error {
	v, err := blob.NewVerifier(nil, d.layer.desc.Digest, d.layer.desc.Size)
	if err != nil {
		return err
	}
	d.verifier, d.have = v, 0
	if _, err := d.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return d.file.Truncate(0)
}

// fetch asks for what is missing and appends it.
func (d *download) fetch(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	header := http.Header{}
	if d.have > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", d.have))
	}
	resp, err := d.layer.repo.get(ctx, "blobs", d.layer.desc.Digest.String(), header)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := transport.CheckError(resp, http.StatusOK, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable); err != nil {
		return fmt.Errorf("asking for it: %w", err)
	}
	if d.have > 0 && !d.continues(resp) {
		if err := d.restart(); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("registry cannot continue a download: %w", io.ErrUnexpectedEOF)
		}
	}
	stall := time.AfterFunc(stallTimeout, func() { cancel(errStalled) })
	defer stall.Stop()
	d.verifier.From(blob.Count(resp.Body, func(n int) {
		stall.Reset(stallTimeout)
		if d.count != nil {
			d.count(n)
		}
	}))
	n, err := io.Copy(d.file, d.verifier)
	d.have += n
	if err != nil && errors.Is(context.Cause(ctx), errStalled) {
		return errStalled
	}
	if err != nil {
		return fmt.Errorf("after %d bytes: %w", d.have, err)
	}
	return nil
}

// continues reports whether a response begins where the file ends.
func (d *download) continues(resp *http.Response) bool {
	return resp.StatusCode == http.StatusPartialContent &&
		strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", d.have))
}
