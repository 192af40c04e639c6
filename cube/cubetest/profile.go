package cubetest

import (
	"slices"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/value"
)

// aggregateProfiling returns the mean of each timing over all steps of all
// reports, in order of first appearance: "step/OP" for a float, "step/OP/SUB"
// for the parts of a map, and the difference for a pair. Everything else is
// ignored (CUBE, section 10.4).
func aggregateProfiling(profiles ...cube.Value) *cube.Object {
	sums := means{sum: map[string]float64{}, n: map[string]int{}}
	for _, p := range profiles {
		steps, _ := p.(cube.List)
		for _, step := range steps {
			if o, ok := step.(*cube.Object); ok {
				sums.addStep(o)
			}
		}
	}
	out := value.NewObject(len(sums.keys))
	for _, k := range sums.keys {
		out.Set(k, cube.Float(sums.sum[k]/float64(sums.n[k])))
	}
	return out
}

type means struct {
	keys []string
	sum  map[string]float64
	n    map[string]int
}

func (m *means) add(key string, x float64) {
	if m.n[key] == 0 {
		m.keys = append(m.keys, key)
	}
	m.sum[key] += x
	m.n[key]++
}

func (m *means) addStep(step *cube.Object) {
	for op, v := range step.All() {
		switch v := v.(type) {
		case cube.Float:
			m.add("step/"+op, float64(v))
		case *cube.Object:
			for sub, x := range v.All() {
				if f, ok := toFloat(x); ok {
					m.add("step/"+op+"/"+sub, f)
				}
			}
		case cube.List:
			if len(v) != 2 {
				continue
			}
			start, ok1 := toFloat(v[0])
			end, ok2 := toFloat(v[1])
			if ok1 && ok2 {
				m.add("step/"+op, end-start)
			}
		}
	}
}

// toFloat is Python's float() of a JSON value.
func toFloat(v cube.Value) (float64, bool) {
	if s, ok := v.(cube.Str); ok {
		f, err := value.ParseFloat(string(s))
		return float64(f), err == nil
	}
	n, ok := number(v)
	if !ok {
		return 0, false
	}
	f, err := value.ToFloat(n)
	return f, err == nil
}

// percentile returns the element at int(p·(n-1)) of the sorted times, 0.0 when
// there are none.
func percentile(times []float64, p float64) float64 {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[int(p*float64(len(sorted)-1))]
}
