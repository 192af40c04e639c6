package mcp_test

import (
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// BenchmarkCall is one call of a tool that does nothing, from a client of the kit.
func BenchmarkCall(b *testing.B) {
	for _, w := range ways {
		b.Run(w.String(), func(b *testing.B) {
			s := w.dial(b, start(b, nil).Player, nil)
			for b.Loop() {
				if _, err := s.CallTool(b.Context(), &sdk.CallToolParams{Name: "look"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
