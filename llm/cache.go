package llm

import (
	"slices"
	"strings"
)

// MarkLast returns the messages with cache marks on the last n, and on no other, where the
// model of the name needs such marks: its name contains "anthropic" or "claude". For other
// models the messages are returned as they are. The given messages are not changed.
func MarkLast(name string, messages []Message, n int) []Message {
	if !NeedsCacheMarks(name) {
		return messages
	}
	out := slices.Clone(messages)
	for i := range out {
		out[i].Cache = i >= len(out)-n
	}
	return out
}

// NeedsCacheMarks tells whether the model of a name caches only what is marked.
func NeedsCacheMarks(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "anthropic") || strings.Contains(name, "claude")
}
