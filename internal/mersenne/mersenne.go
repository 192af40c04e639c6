// Package mersenne draws the pseudo-random numbers that Python's random module
// draws from the same seed.
package mersenne

// Twister is MT19937. It is not safe for concurrent use.
type Twister struct {
	state [624]uint32
	next  int
}

// Parameters of MT19937.
const (
	size      = 624
	shift     = 397
	matrix    = 0x9908b0df
	upper     = 0x80000000
	lower     = 0x7fffffff
	initMul   = 1812433253
	arraySeed = 19650218
	arrayMul1 = 1664525
	arrayMul2 = 1566083941
)

// New returns a generator seeded as Python's random.Random seeds one with an
// int of one word.
func New(key uint32) *Twister {
	m := &Twister{next: size}
	s := &m.state
	s[0] = arraySeed
	for i := uint32(1); i < size; i++ {
		s[i] = initMul*(s[i-1]^s[i-1]>>30) + i
	}
	i := 1
	step := func(mul, add uint32, subtract bool) {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*mul)
		if subtract {
			s[i] -= uint32(i)
		}
		s[i] += add
		if i++; i >= size {
			s[0] = s[size-1]
			i = 1
		}
	}
	for range size {
		step(arrayMul1, key, false)
	}
	for range size - 1 {
		step(arrayMul2, 0, true)
	}
	s[0] = 0x80000000
	return m
}

func (m *Twister) uint32() uint32 {
	if m.next >= size {
		m.refill()
	}
	y := m.state[m.next]
	m.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

func (m *Twister) refill() {
	s := &m.state
	for i := range size {
		y := s[i]&upper | s[(i+1)%size]&lower
		s[i] = s[(i+shift)%size] ^ y>>1
		if y&1 != 0 {
			s[i] ^= matrix
		}
	}
	m.next = 0
}

// Word returns a number below 2³² as Python's randrange(2³²) does: it draws 33
// bits until they are less.
func (m *Twister) Word() int64 {
	for {
		low, high := m.uint32(), m.uint32()
		if high>>31 == 0 {
			return int64(low)
		}
	}
}
