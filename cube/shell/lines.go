package shell

import (
	"regexp"
	"strconv"

	"github.com/proctor-run/proctor/cube"
)

var digits = regexp.MustCompile(`\d+`)

// lineRange reads the line arguments of read_file as models write them: numbers,
// numeric text, or both lines in the first argument ("[200, 210]", "10-20").
// nil means no bound.
func lineRange(start, end cube.Value) (first, last *int) {
	first, second := lineNumbers(start)
	last, _ = lineNumbers(end)
	if last == nil {
		last = second
	}
	return first, last
}

func lineNumbers(v cube.Value) (first, second *int) {
	switch v := v.(type) {
	case cube.Int:
		if n, ok := v.Int64(); ok {
			first = new(int(n))
		}
	case cube.Float:
		first = new(int(v))
	case cube.Str:
		numbers := digits.FindAllString(string(v), 2)
		if len(numbers) > 0 {
			first = lineNumber(numbers[0])
		}
		if len(numbers) > 1 {
			second = lineNumber(numbers[1])
		}
	case cube.List:
		if len(v) > 0 {
			first, _ = lineNumbers(v[0])
		}
		if len(v) > 1 {
			second, _ = lineNumbers(v[1])
		}
	}
	return first, second
}

func lineNumber(s string) *int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return nil
	}
	return &n
}
