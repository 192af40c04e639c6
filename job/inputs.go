package job

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path/filepath"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
)

// writeInputs writes what the job was asked to do, and notes what it wrote.
func (m *monitor) writeInputs(p *Prepared, lookup harbor.Lookup) error {
	e := journal.Entry{Kind: journal.InputsWritten}
	var err error
	if e.PolicyDigest, err = p.writePolicy(); err != nil {
		return err
	}
	config := m.secrets.Bytes(p.Config.AppendJSON(nil, lookup))
	if err := atomicfile.Write(filepath.Join(m.dir, scan.ConfigFile), config, 0o644); err != nil {
		return err
	}
	e.ConfigDigest = new(jobdir.DigestOf(config))
	if e.LockDigest, err = m.writeLock(p.Lock, lookup); err != nil {
		return err
	}
	if err := m.write(); err != nil {
		return err
	}
	return m.journal.Append(e)
}

// writeLock writes the lock piece by piece, for it may be larger than all else.
func (m *monitor) writeLock(lock *jobdir.Lock, lookup harbor.Lookup) (*jobdir.FileDigest, error) {
	if lock == nil {
		return nil, nil //nolint:nilnil // what is not written has no digest
	}
	sum, size := sha256.New(), counter(0)
	err := atomicfile.WriteFrom(filepath.Join(m.dir, scan.LockFile), 0o644, func(w io.Writer) error {
		clean := m.secrets.Writer(io.MultiWriter(w, sum, &size))
		return errors.Join(lock.WriteJSON(clean, lookup), clean.Close())
	})
	if err != nil {
		return nil, err
	}
	return &jobdir.FileDigest{SHA256: hex.EncodeToString(sum.Sum(nil)), Size: int64(size)}, nil
}

// counter counts what is written to it, in bytes.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
