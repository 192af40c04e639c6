package harbor

import (
	"math/big"
	"path"
	"strings"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// shortAlphabet are the digits of base 57 in which identifiers are shortened,
// and shortLength how many are needed for 128 bits.
const (
	shortAlphabet = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	shortLength   = 22
)

// GitCachePath returns where a task of a git repository is kept below the task
// cache, "<id>/<name>" (section 1.7). commit is nil for the default branch,
// dir is the task's path in the repository.
func GitCachePath(url string, commit *string, dir string) string {
	dir = schema.CleanPath(dir)
	text := "git_url=" + value.Repr(value.Str(url)) + " git_commit_id=None"
	if commit != nil {
		text = strings.TrimSuffix(text, "None") + value.Repr(value.Str(*commit))
	}
	text += " path=PosixPath(" + value.Repr(value.Str(dir)) + ")"
	return shortID(uuid.NewSHA1(uuid.NameSpaceDNS, []byte(text))) + "/" + path.Base(dir)
}

// PackageCachePath returns where a task package is kept below the task cache.
// digest is "sha256:<hex>" or the hex digits alone.
func PackageCachePath(org, name, digest string) string {
	return path.Join("packages", org, name, strings.TrimPrefix(digest, "sha256:"))
}

func shortID(id uuid.UUID) string {
	n := new(big.Int).SetBytes(id[:])
	base, digit := big.NewInt(int64(len(shortAlphabet))), new(big.Int)
	var out [shortLength]byte
	for i := shortLength - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		out[i] = shortAlphabet[digit.Int64()]
	}
	return string(out[:])
}
