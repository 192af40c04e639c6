package evaluation

import (
	"github.com/proctor-run/proctor/internal/redact"
	"github.com/proctor-run/proctor/ownrunner"
)

// Placeholders puts the contract's placeholders where secrets have been redacted (outcome
// mapping, section 13.4).
func Placeholders(text string) string {
	token := redact.Mark(ownrunner.TokenVariable)
	var others []string
	for _, name := range redact.Marked(text) {
		others = append(others, redact.Mark(name))
	}
	return ownrunner.Redact(text, token, others)
}
