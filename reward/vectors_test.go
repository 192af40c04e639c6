package reward_test

import (
	"encoding/base64"
	"math"
	"testing"
	"unicode/utf16"

	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// eachCase runs a function for every line of a vector file.
func eachCase(t *testing.T, file string, run func(t *testing.T, c, want *value.Object)) {
	t.Helper()
	vectors.Each(t, "rewards/"+file, func(t *testing.T, c *value.Object) { run(t, c, vectors.Object(c, "want")) })
}

func decoded(t *testing.T, o *value.Object) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(vectors.Str(o, "b64"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// name returns a key, which may be given in UTF-16 code units.
func name(v value.Value) string {
	if s, ok := v.(value.Str); ok {
		return string(s)
	}
	var units []uint16
	for _, u := range v.(*value.Object).All() {
		for _, unit := range u.(value.List) {
			n, _ := unit.(value.Int).Int64()
			units = append(units, uint16(n))
		}
	}
	var s []byte
	for i := 0; i < len(units); i++ {
		r := rune(units[i])
		if i+1 < len(units) && utf16.DecodeRune(r, rune(units[i+1])) != '\ufffd' {
			r = utf16.DecodeRune(r, rune(units[i+1]))
			i++
		}
		if utf16.IsSurrogate(r) {
			s = append(s, 0xED, 0x80|byte(r>>6&0x3F), 0x80|byte(r&0x3F))
			continue
		}
		s = append(s, string(r)...)
	}
	return string(s)
}

// rewards reads pairs, or null.
func rewards(t *testing.T, v value.Value) *reward.Rewards {
	t.Helper()
	if value.IsNull(v) {
		return nil
	}
	r := &reward.Rewards{}
	for _, pair := range v.(value.List) {
		p := pair.(value.List)
		r.Set(name(p[0]), vectors.Number(t, p[1]))
	}
	return r
}

// result reads a verifier result, or null.
func result(t *testing.T, v value.Value) *reward.Result {
	t.Helper()
	if value.IsNull(v) {
		return nil
	}
	return &reward.Result{Rewards: rewards(t, vectors.Get(v.(*value.Object), "rewards"))}
}

// identical compares names, order, kinds and bits.
func identical(a, b *value.Object) bool {
	return (a == nil) == (b == nil) && value.Repr(a) == value.Repr(b)
}

// same tells kinds apart, and zeros, but not nans.
func same(a, b value.Number) bool {
	x, okX := a.(value.Float)
	y, okY := b.(value.Float)
	if okX && okY && math.IsNaN(float64(x)) {
		return math.IsNaN(float64(y))
	}
	return value.Repr(a) == value.Repr(b)
}

// checkError compares an error with a case that wants one, and reports whether the
// case does.
func checkError(t *testing.T, want *value.Object, paths map[string]string, err error) bool {
	t.Helper()
	if !want.Has("error") {
		if err != nil {
			t.Errorf("got error %v", err)
		}
		return err != nil
	}
	checkException(t, want, paths, err)
	return true
}
