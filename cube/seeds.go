package cube

import (
	"crypto/md5"
	"encoding/binary"
	"strconv"

	"github.com/proctor-run/proctor/internal/mersenne"
)

// SeedGenerator gives every task of a benchmark its seeds; there is one task
// config per seed (CUBE, section 8).
type SeedGenerator interface {
	Typed
	Seeds(m Metadata) ([]int64, error)
}

// BasicSeedGenerator derives NSeed seeds from the task's native id and a seed
// of its own. The same pair gives the same seeds in every implementation.
type BasicSeedGenerator struct {
	NSeed    int   `json:"n_seed"`
	MetaSeed int64 `json:"meta_seed"`
}

// TypeName is the name of the type in documents.
func (*BasicSeedGenerator) TypeName() string { return "cube.seed.BasicSeedGenerator" }

// maxSeeds bounds the seeds of one task: a config comes from outside.
const maxSeeds = 1_000_000

// Seeds returns numbers from 0 to 2³².
func (g *BasicSeedGenerator) Seeds(m Metadata) ([]int64, error) {
	if g.NSeed > maxSeeds {
		return nil, ValueErrorf("n_seed is %d, more than %d", g.NSeed, maxSeeds)
	}
	rng := mersenne.New(baseSeed(m.Base().ID, g.MetaSeed))
	out := make([]int64, 0, max(g.NSeed, 0))
	for range g.NSeed {
		out = append(out, rng.Word())
	}
	return out, nil
}

// baseSeed is what a task's seeds are drawn from: the MD5 of "ID_METASEED" as
// a big-endian number, modulo 2³².
func baseSeed(id string, metaSeed int64) uint32 {
	sum := md5.Sum([]byte(id + "_" + strconv.FormatInt(metaSeed, 10)))
	return binary.BigEndian.Uint32(sum[12:])
}
