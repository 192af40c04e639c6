package trial

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/redact"
	"github.com/proctor-run/proctor/internal/secret"
	"github.com/proctor-run/proctor/jobdir"
)

// source is where the secrets of trials come from.
func (r *Runner) source() secret.Source {
	return secret.Source{Lookup: r.Lookup, Environ: r.Environ, Names: r.SecretNames}
}

// veil hides the secrets of a trial in what is written of it. Those of the task are
// added when it has been loaded. It may be used by several goroutines.
type veil struct {
	mu   sync.Mutex // guards what follows
	list []redact.Secret
	set  *redact.Set
}

// veil hides what the configuration and the environment hold.
func (r *Runner) veil(cfg jobdir.TrialConfig) *veil {
	v := &veil{}
	v.cover(r.source().OfTrial(cfg, nil))
	return v
}

// cover hides these secrets from now on.
func (v *veil) cover(list []redact.Secret) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !slices.Equal(v.list, list) {
		v.list, v.set = list, redact.New(list)
	}
}

// add hides one more secret from now on.
func (v *veil) add(one redact.Secret) {
	v.mu.Lock()
	list := slices.Clone(v.list)
	v.mu.Unlock()
	if !slices.ContainsFunc(list, func(s redact.Secret) bool { return s.Value == one.Value }) {
		v.cover(append(list, one))
	}
}

func (v *veil) secrets() *redact.Set {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.set
}

func (v *veil) text(s string) string              { return v.secrets().String(s) }
func (v *veil) bytes(b []byte) []byte             { return v.secrets().Bytes(b) }
func (v *veil) writer(w io.Writer) io.WriteCloser { return v.secrets().Writer(w) }

// writeNotes writes proctor.json and returns its digest.
func (a *attempt) writeNotes() (*jobdir.FileDigest, error) {
	data, err := a.notes.AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	data = a.veil.bytes(data)
	if err := atomicfile.WriteUnsynced(filepath.Join(a.dir, jobdir.NotesFile), data, 0o644); err != nil {
		return nil, err
	}
	return new(jobdir.DigestOf(data)), nil
}

// veiledResult is the text of result.json. Where a secret was in it, the result that
// others are told becomes what the file holds.
func (a *attempt) veiledResult() []byte {
	data := a.res.AppendJSON(nil, a.r.Lookup)
	clean := a.veil.bytes(data)
	if bytes.Equal(clean, data) {
		return data
	}
	res, err := jobdir.ParseTrialResult(clean)
	if err != nil {
		a.log.printf("Warning: a secret was part of what the result cannot be read without: %v", err)
		return clean
	}
	a.res = &res
	return clean
}

// scanFiles takes secrets out of the files that the sandbox wrote. The trial's log is
// open, and has none.
func (a *attempt) scanFiles() {
	set := a.veil.secrets()
	if err := redact.Tree(a.dir, set, a.r.Abandon, "trial.log"); err != nil {
		a.warn("files of the trial may still hold secrets, so its directory stays closed to other users: %v", err)
		a.harmless = false
	}
}
