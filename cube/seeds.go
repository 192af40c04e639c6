package cube

import (
	"crypto/md5"
	"encoding/binary"
	"strconv"
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

// TypeName returns "cube.seed.BasicSeedGenerator".
func (*BasicSeedGenerator) TypeName() string { return "cube.seed.BasicSeedGenerator" }

// maxSeeds bounds the seeds of one task: a config comes from outside.
const maxSeeds = 1_000_000

// Seeds returns numbers from 0 to 2³².
func (g *BasicSeedGenerator) Seeds(m Metadata) ([]int64, error) {
	if g.NSeed > maxSeeds {
		return nil, ValueErrorf("n_seed is %d, more than %d", g.NSeed, maxSeeds)
	}
	rng := newMersenneTwister(baseSeed(m.Base().ID, g.MetaSeed))
	out := make([]int64, 0, max(g.NSeed, 0))
	for range g.NSeed {
		out = append(out, rng.seed())
	}
	return out, nil
}

// baseSeed is what a task's seeds are drawn from: the MD5 of "ID_METASEED" as
// a big-endian number, modulo 2³².
func baseSeed(id string, metaSeed int64) uint32 {
	sum := md5.Sum([]byte(id + "_" + strconv.FormatInt(metaSeed, 10)))
	return binary.BigEndian.Uint32(sum[12:])
}

// mersenneTwister is MT19937 seeded as Python's random.Random seeds it with
// one word.
type mersenneTwister struct {
	state [624]uint32
	next  int
}

// Parameters of MT19937.
const (
	mtN         = 624
	mtM         = 397
	mtMatrix    = 0x9908b0df
	mtUpper     = 0x80000000
	mtLower     = 0x7fffffff
	mtInitMul   = 1812433253
	mtArraySeed = 19650218
	mtArrayMul1 = 1664525
	mtArrayMul2 = 1566083941
)

func newMersenneTwister(key uint32) *mersenneTwister {
	m := &mersenneTwister{next: mtN}
	s := &m.state
	s[0] = mtArraySeed
	for i := uint32(1); i < mtN; i++ {
		s[i] = mtInitMul*(s[i-1]^s[i-1]>>30) + i
	}
	i := 1
	step := func(mul, add uint32, subtract bool) {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*mul)
		if subtract {
			s[i] -= uint32(i)
		}
		s[i] += add
		if i++; i >= mtN {
			s[0] = s[mtN-1]
			i = 1
		}
	}
	for range mtN {
		step(mtArrayMul1, key, false)
	}
	for range mtN - 1 {
		step(mtArrayMul2, 0, true)
	}
	s[0] = 0x80000000
	return m
}

func (m *mersenneTwister) uint32() uint32 {
	if m.next >= mtN {
		m.refill()
	}
	y := m.state[m.next]
	m.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

func (m *mersenneTwister) refill() {
	s := &m.state
	for i := range mtN {
		y := s[i]&mtUpper | s[(i+1)%mtN]&mtLower
		s[i] = s[(i+mtM)%mtN] ^ y>>1
		if y&1 != 0 {
			s[i] ^= mtMatrix
		}
	}
	m.next = 0
}

// seed draws 33 bits until they are less than 2³²: Python's randrange of 2³².
func (m *mersenneTwister) seed() int64 {
	for {
		low, high := m.uint32(), m.uint32()
		if high>>31 == 0 {
			return int64(low)
		}
	}
}
