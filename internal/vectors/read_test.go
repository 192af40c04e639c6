package vectors

import (
	"strings"
	"testing"
)

func TestFilesWithoutACaseAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":              "there is no case",
		"[1]\n":         "case 0 is not an object",
		"{\"id\":1}\n{": "case 1: ",
		"\n":            "case 0: ",
	} {
		if _, err := read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
	cases, err := read([]byte("{\"id\":\"a\",\"x\":{\"$float\":\"inf\"}}\n{\"id\":\"b\"}"))
	if err != nil || len(cases) != 2 || Str(cases[1], "id") != "b" {
		t.Errorf("got %v, %v", cases, err)
	}
}
