package ownrunner

import (
	"cmp"
	"slices"
	"strings"
)

// TokenVariable is the variable with the gateway's token.
const TokenVariable = "OPENROUTER_API_KEY"

// agentVariables are the only variables of the host that reach an agent.
var agentVariables = [...]string{"LLM_COST_LIMIT", TokenVariable}

// AgentEnv returns the variables that may reach an agent.
func AgentEnv(env map[string]string) map[string]string {
	out := map[string]string{}
	for _, name := range agentVariables {
		if value, ok := env[name]; ok {
			out[name] = value
		}
	}
	return out
}

// IsSecretName reports whether a variable's name looks like that of a secret.
func IsSecretName(name string) bool {
	name = strings.ToUpper(name)
	switch name {
	case "GPG_KEY", "PYTHON_SHA256", "PYTHON_GET_PIP_SHA256":
		return false
	}
	for _, part := range []string{
		"SECRET", "TOKEN", "PASSWORD", "PASSWD", "CREDENTIAL", "API_KEY", "APIKEY", "ACCESS_KEY", "PRIVATE_KEY",
	} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// IsForbiddenName reports whether a variable must not be found in an agent's
// environment: its name looks like that of a secret and is not among those that
// may reach the agent.
func IsForbiddenName(name string) bool {
	return IsSecretName(name) && !slices.Contains(agentVariables[:], name)
}

// What takes the place of secrets.
const (
	redactedToken = "[REDACTED_GATEWAY_TOKEN]"
	redactedValue = "[REDACTED_MINER_ENV]"
)

// Redact replaces secrets in text, the longest first: the gateway's token, ""
// for none, and values that users supplied. Nothing is replaced within what took
// a secret's place.
func Redact(text, token string, values []string) string {
	secrets := slices.DeleteFunc(append([]string{token}, values...), func(s string) bool { return s == "" })
	slices.SortStableFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	pieces := []string{text} // of these, every second one has taken a secret's place
	for _, secret := range secrets {
		placeholder := redactedValue
		if secret == token {
			placeholder = redactedToken
		}
		pieces = replaceIn(pieces, secret, placeholder)
	}
	return strings.Join(pieces, "")
}

// replaceIn splits the pieces at even positions at each secret.
func replaceIn(pieces []string, secret, placeholder string) []string {
	out := make([]string, 0, len(pieces))
	for i, piece := range pieces {
		if i%2 == 1 {
			out = append(out, piece)
			continue
		}
		for j, part := range strings.Split(piece, secret) {
			if j > 0 {
				out = append(out, placeholder)
			}
			out = append(out, part)
		}
	}
	return out
}
