package atif

import (
	"math"
	"slices"

	"github.com/proctor-run/proctor/value"
)

// Style is one of the layouts in which agents of the reference write their
// trajectories: all indent by two spaces and end without a newline (section 6.6).
type Style int

const (
	// Compact writes lists of numbers on one line and escapes what is not ASCII:
	// terminus-2, codex, opencode.
	Compact Style = iota
	// ASCII has one item per line and escapes what is not ASCII: gemini-cli,
	// mini-swe-agent, goose, openhands.
	ASCII
	// Unicode has one item per line and escapes nothing: claude-code.
	Unicode
)

// Append appends the trajectory as JSON. It is not checked; [Decode] of its
// [Trajectory.Object] does that.
func (t *Trajectory) Append(dst []byte, s Style) []byte {
	return appendDocument(dst, t.Object(), s)
}

func appendDocument(dst []byte, v value.Value, s Style) []byte {
	if s == Compact {
		return appendCompact(dst, v, "\n")
	}
	return value.AppendDumps(dst, v, value.DumpsOptions{Indent: 2, Unicode: s == Unicode})
}

// appendCompact appends v; newline is a line break and the indentation of v.
func appendCompact(dst []byte, v value.Value, newline string) []byte {
	inner := newline + "  "
	switch v := v.(type) {
	case value.List:
		if len(v) == 0 || !slices.ContainsFunc(v, isNotNumber) {
			return value.AppendDumps(dst, v, value.DumpsOptions{})
		}
		dst = append(dst, '[')
		for i, item := range v {
			dst = appendCompact(appendBreak(dst, i, inner), item, inner)
		}
		return append(append(dst, newline...), ']')
	case *value.Object:
		if v.Len() == 0 {
			break
		}
		dst = append(dst, '{')
		i := 0
		for key, item := range v.All() {
			dst = value.AppendDumps(appendBreak(dst, i, inner), value.Str(key), value.DumpsOptions{})
			dst = appendCompact(append(dst, ": "...), item, inner)
			i++
		}
		return append(append(dst, newline...), '}')
	}
	return value.AppendDumps(dst, v, value.DumpsOptions{})
}

func appendBreak(dst []byte, item int, newline string) []byte {
	if item > 0 {
		dst = append(dst, ',')
	}
	return append(dst, newline...)
}

// isNotNumber reports what keeps a list from being put on one line, which nan and
// infinities do as well.
func isNotNumber(v value.Value) bool {
	switch v := v.(type) {
	case value.Int:
		return false
	case value.Float:
		return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0)
	}
	return true
}
