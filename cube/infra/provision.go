package infra

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/value"
)

// provisionStore remembers in a directory what has been provisioned: one JSON
// file per key (CUBE, section 7.3).
type provisionStore struct{ dir string }

// newProvisionStore returns a store in a directory that need not exist.
func newProvisionStore(dir string) *provisionStore { return &provisionStore{dir} }

// fileName returns the name of a key's file: the key with every character that
// may not be in it replaced.
func (*provisionStore) fileName(key string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:@-", r) {
			return r
		}
		return '_'
	}, key) + ".json"
}

// tempName returns the name that a key's file has while it is written.
func (s *provisionStore) tempName(key string) string {
	return strings.TrimSuffix(s.fileName(key), ".json") + ".tmp"
}

// put stores what is known of a key.
func (s *provisionStore) put(key string, info *value.Object) error {
	if info == nil {
		info = &value.Object{}
	}
	data := value.AppendDumps(nil, info, value.DumpsOptions{Indent: 2})
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	temp := filepath.Join(s.dir, s.tempName(key))
	if err := os.WriteFile(temp, data, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(s.dir, s.fileName(key)))
}

// maxProvisioned bounds what is kept of a key, in bytes: names and addresses.
const maxProvisioned = 16 << 20

// get returns what is known of a key. What cannot be read is absent.
func (s *provisionStore) get(key string) (*value.Object, bool) {
	data, err := bounded.ReadIn(s.dir, s.fileName(key), maxProvisioned)
	if err != nil {
		return nil, false
	}
	v, err := value.Decode(data)
	if err != nil {
		return nil, false
	}
	info, ok := v.(*value.Object)
	return info, ok
}

// has reports whether something is known of a key.
func (s *provisionStore) has(key string) bool {
	_, ok := s.get(key)
	return ok
}
