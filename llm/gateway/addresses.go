package gateway

import (
	"strings"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
)

// Addresses are those of the gateway, which is at address in the sandbox, for a client of a
// protocol: url ends with the protocol's version, as OpenAI's clients want it; root is
// without it, as Anthropic's and Google's want it.
func Addresses(address string, api llm.API) (url, root string) {
	if api == llm.Chat || api == llm.Responses {
		address += "/v1"
	}
	return Direct(address, api)
}

// Direct are the addresses of a server itself, whose base [llm.Endpoint] has: empty for the
// protocol's own.
func Direct(base string, api llm.API) (url, root string) {
	url = wire.Address(api, base, "")
	for _, version := range []string{"/v1beta", "/v1"} {
		if short, ok := strings.CutSuffix(url, version); ok {
			return url, short
		}
	}
	return url, url
}
