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
// ("http://127.0.0.1:61081"): its own, in which the provider's keys are replaced by that of
// the gateway wherever they stand, then those in which programs look for addresses and keys.
func (g *Gateway) Vars(own []string, address string) []string {
	keys := llm.KeyVariables(g.Model)
	added, hide := g.added(address, keys), g.hiding(own, keys)
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
		vars = append(vars, name+"="+hide(value))
	}
	if proxied {
		exempt += "127.0.0.1,localhost"
		added = append(added, "NO_PROXY="+exempt, "no_proxy="+exempt)
	}
	return append(vars, added...)
}

// hiding puts the gateway's key in the place of the provider's keys: the one that is used,
// and what else the program's own variables have. A key that may well be a word is replaced
// only where it is the whole value.
func (g *Gateway) hiding(own, keys []string) func(value string) string {
	var hidden []string
	if g.Route != nil {
		hidden = append(hidden, g.Route.Key)
	}
	for _, assignment := range own {
		if name, value, _ := strings.Cut(assignment, "="); slices.Contains(keys, name) {
			hidden = append(hidden, value)
		}
	}
	return func(value string) string {
		for _, key := range hidden {
			switch {
			case secret(key):
				value = strings.ReplaceAll(value, key, g.Key)
			case key != "" && value == key:
				value = g.Key
			}
		}
		return value
	}
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
