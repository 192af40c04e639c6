package gateway

import (
	"slices"
	"strings"

	"github.com/proctor-run/proctor/llm"
)

// The variables in which programs find the gateway whatever protocol they speak.
const (
	AddressVariable = "PROCTOR_MODEL_URL" // its address, without a version
	KeyVariable     = "PROCTOR_MODEL_KEY" // its key
)

// Vars are the variables, KEY=VALUE, of a program that is to use the gateway at an address
// ("http://127.0.0.1:61081"): its own, in which the provider's key is replaced by that of
// the gateway wherever it stands, then those in which programs look for addresses and keys.
func (g *Gateway) Vars(own []string, address string) []string {
	keys := llm.KeyVariables(g.Model)
	added := g.added(address, keys)
	var vars []string
	proxied, exempt := false, ""
	for _, assignment := range own {
		name, value, _ := strings.Cut(assignment, "=")
		switch lower := strings.ToLower(name); {
		case name == bearerVariable && slices.Contains(keys, name):
			continue // programs that find both of Anthropic's keys complain
		case slices.Contains(keys, name):
			value = g.Key
		case lower == "no_proxy":
			exempt = value + ","
		case strings.HasSuffix(lower, "_proxy") && value != "":
			proxied = true
		}
		if g.Route != nil && g.Route.Key != "" {
			value = strings.ReplaceAll(value, g.Route.Key, g.Key)
		}
		vars = append(vars, name+"="+value)
	}
	if proxied {
		exempt += "127.0.0.1,localhost"
		added = append(added, "NO_PROXY="+exempt, "no_proxy="+exempt)
	}
	return append(vars, added...)
}

// added are the variables that lead to the gateway.
func (g *Gateway) added(address string, keys []string) []string {
	vars := []string{AddressVariable + "=" + address, KeyVariable + "=" + g.Key}
	set := func(value string, names ...string) {
		for _, name := range names {
			vars = append(vars, name+"="+value)
		}
	}
	set(g.Key, keys[:min(len(keys), 1)]...)
	own := g.Protocols[0]
	versioned := address + "/v1"
	if own == llm.Chat || own == llm.Responses {
		set(versioned, llm.BaseVariables(g.Model)...)
	}
	for _, api := range g.Protocols {
		switch api {
		case llm.Chat:
			set(g.Key, "OPENAI_API_KEY")
			set(versioned, "OPENAI_BASE_URL", "OPENAI_API_BASE")
		case llm.Anthropic:
			set(g.Key, "ANTHROPIC_API_KEY")
			set(address, "ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE")
		case llm.Gemini:
			set(g.Key, "GEMINI_API_KEY")
			set(address, "GOOGLE_GEMINI_BASE_URL")
		case llm.Responses: // has the variables of chat
		}
	}
	return vars
}

// bearerVariable is one of Anthropic's two for keys.
const bearerVariable = "ANTHROPIC_AUTH_TOKEN"
