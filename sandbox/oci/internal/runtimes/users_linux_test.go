package runtimes

import "testing"

func TestParseSubordinate(t *testing.T) {
	t.Parallel()
	names := []string{"1000", "ann"}
	tests := []struct {
		line string
		want idRange
		ok   bool
	}{
		{"ann:100000:65536", idRange{100000, 65536}, true},
		{"1000:1:2", idRange{1, 2}, true},
		{"bob:100000:65536", idRange{}, false},
		{"ann:x:65536", idRange{}, false},
		{"ann:1:-5", idRange{}, false},
		{"ann:1:99999999999", idRange{}, false},
		{"ann:1", idRange{}, false},
		{"", idRange{}, false},
	}
	for _, tt := range tests {
		if got, ok := parseSubordinate(tt.line, names); got != tt.want || ok != tt.ok {
			t.Errorf("%q: got %v, %v, want %v, %v", tt.line, got, ok, tt.want, tt.ok)
		}
	}
}
