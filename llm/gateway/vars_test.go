package gateway_test

import (
	"slices"
	"testing"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/gateway"
)

// TestVarsHaveNoKeyOfTheProvider: it is replaced under every name and inside of values, also
// one that is not used; short words that stand for keys are left in what has them by chance.
func TestVarsHaveNoKeyOfTheProvider(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		model, key string
		own, want  []string
	}{
		{"anthropic/m", "sk-ant-0123456789abcdef", []string{"ANTHROPIC_API_KEY=sk-ant-0123456789abcdef", "MINE=a sk-ant-0123456789abcdef b", "MODE=fast"},
			[]string{"ANTHROPIC_API_KEY=K", "MINE=a K b", "MODE=fast"}},
		{"anthropic/m", "the-token-0123456789", []string{"ANTHROPIC_AUTH_TOKEN=the-token-0123456789", "COPY=the-token-0123456789"}, []string{"COPY=K"}},
		{"gemini/m", "first-key-0123456789", []string{"GEMINI_API_KEY=first-key-0123456789", "GOOGLE_API_KEY=second-key-0123456789", "BOTH=first-key-0123456789,second-key-0123456789"},
			[]string{"GEMINI_API_KEY=K", "GOOGLE_API_KEY=K", "BOTH=K,K"}},
		{"local/m", "x", []string{"LOCAL_API_KEY=x", "FLAGS=--max-context", "SAME=x"}, []string{"LOCAL_API_KEY=K", "FLAGS=--max-context", "SAME=K"}},
		{"local/m", "", []string{"FLAGS="}, []string{"FLAGS="}},
		{"openai/m", "", []string{"HTTP_PROXY=http://proxy.test", "NO_PROXY=.test"}, []string{"HTTP_PROXY=http://proxy.test", "NO_PROXY=.test"}},
	} {
		g := &gateway.Gateway{Model: c.model, Key: "K", Protocols: llm.Protocols(c.model, llm.Options{}), Route: &llm.Route{Endpoint: llm.Endpoint{Key: c.key}}}
		got := g.Vars(c.own, "http://127.0.0.1:61081")
		if len(got) < len(c.want) || !slices.Equal(got[:len(c.want)], c.want) || !slices.Contains(got, gateway.KeyVariable+"=K") {
			t.Errorf("%s: %q became %q", c.model, c.own, got)
		}
		if proxied := slices.Contains(got, "NO_PROXY=.test,127.0.0.1,localhost"); proxied != (c.model == "openai/m") {
			t.Errorf("%s: %q", c.model, got)
		}
	}
}
