package value_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/value"
)

// TestDecodeMemory bounds what hostile documents cost: all allocations together,
// so also their peak, stay below 50 times the input.
func TestDecodeMemory(t *testing.T) { // not parallel: it counts allocations
	const n = 1<<17 + 1 // the stacks have just doubled
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"%x":0`, i)
	}
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	for name, text := range map[string]string{
		"ints":         list("0", n),
		"larger ints":  list("999", n),
		"floats":       list("0.0", n),
		"empty texts":  list(`""`, n),
		"texts":        list(`"a"`, n),
		"escapes":      list(`"\n"`, n),
		"empty lists":  list("[]", n),
		"lists":        list("[0]", n),
		"objects":      list("{}", n),
		"one member":   list(`{"":0}`, n),
		"many members": "{" + strings.Join(members, ",") + "}",
		"deep":         list(deep, 100),
		"deep objects": strings.Repeat(`{"":`, 9000) + "0" + strings.Repeat("}", 9000),
		"one text":     `"` + strings.Repeat("a", n) + `"`,
		"one escape":   `"` + strings.Repeat(`\n`, n) + `"`,
		"long ints":    list(strings.Repeat("9", 4300), 1000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		v, err := value.DecodeText(text)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		runtime.KeepAlive(v)
		if ratio := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(text)); ratio > 50 {
			t.Errorf("%s: decoding allocates %.1f times the input", name, ratio)
		} else {
			t.Logf("%s: %.1f", name, ratio)
		}
	}
}

func list(element string, n int) string {
	return "[" + strings.Repeat(element+",", n-1) + element + "]"
}
