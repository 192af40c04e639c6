package harbor

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"unicode"
)

// Longest session id of a verifier's environment, in characters, and how many
// digits of a hash an id that would be longer ends in.
const (
	maxSessionID    = 63
	sessionHashSize = 8
)

// ImageName is the name offered for the image that is built for an
// environment, as MAIN_IMAGE_NAME (section 5.4). taskName is the short name of
// the task.
func ImageName(taskName string) string { return dockerName("hb__"+taskName, "._-") }

// ProjectName is the compose project of a session (section 5.4).
func ProjectName(sessionID string) string { return dockerName(sessionID, "_-") }

// dockerName makes a name of lower-case ASCII letters, digits and the given
// marks that begins with a letter or digit.
func dockerName(name, marks string) string {
	allowed := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }
	name = lower(name)
	if first := strings.IndexFunc(name, allowed); first != 0 {
		name = "0" + name
	}
	return strings.Map(func(r rune) rune {
		if allowed(r) || strings.ContainsRune(marks, r) {
			return r
		}
		return '-'
	}, name)
}

// VerifierSessionID is the session of a separate verifier's environment
// (section 6.4). key is "trial", or the name of a step.
func VerifierSessionID(trialName, key string) string {
	safe := []rune(trialName + "__verifier__" + key)
	for i, r := range safe {
		if !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("-._", r) {
			safe[i] = '_'
		}
	}
	if len(safe) <= maxSessionID {
		return string(safe)
	}
	sum := sha1.Sum([]byte(string(safe)))
	end := "__" + hex.EncodeToString(sum[:])[:sessionHashSize]
	return strings.TrimRight(string(safe[:maxSessionID-len(end)]), "-._") + end
}
