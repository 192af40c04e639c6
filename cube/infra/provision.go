package infra

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// ProvisionStore remembers in a directory what has been provisioned: one JSON
// file per key (CUBE, section 7.3).
type ProvisionStore struct{ dir string }

// NewProvisionStore returns a store in a directory that need not exist.
func NewProvisionStore(dir string) *ProvisionStore { return &ProvisionStore{dir} }

// FileName returns the name of a key's file: the key with every character that
// may not be in it replaced.
func (*ProvisionStore) FileName(key string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:@-", r) {
			return r
		}
		return '_'
	}, key) + ".json"
}

// TempName returns the name that a key's file has while it is written.
func (s *ProvisionStore) TempName(key string) string {
	return strings.TrimSuffix(s.FileName(key), ".json") + ".tmp"
}

// Put stores what is known of a key.
func (s *ProvisionStore) Put(key string, info *value.Object) error {
	if info == nil {
		info = &value.Object{}
	}
	data := value.AppendDumps(nil, info, value.DumpsOptions{Indent: 2})
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	temp := filepath.Join(s.dir, s.TempName(key))
	if err := os.WriteFile(temp, data, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(s.dir, s.FileName(key)))
}

// Get returns what is known of a key. What cannot be read is absent.
func (s *ProvisionStore) Get(key string) (*value.Object, bool) {
	data, err := os.ReadFile(filepath.Join(s.dir, s.FileName(key)))
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

// Has reports whether something is known of a key.
func (s *ProvisionStore) Has(key string) bool {
	_, ok := s.Get(key)
	return ok
}

// Delete forgets a key.
func (s *ProvisionStore) Delete(key string) error {
	err := os.Remove(filepath.Join(s.dir, s.FileName(key)))
	if os.IsNotExist(err) {
		return nil
	}
	return err
}
