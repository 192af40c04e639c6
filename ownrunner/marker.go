package ownrunner

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/proctor-run/proctor/value"
)

// stages are those that a failure may name.
var stages = [...]string{
	"binding", "window", "agent_identity", "preflight_tasks", "key_release", "golden_decrypt", "job", "emit", "cli",
}

// maxDetail is up to how many characters of a failure's detail are shown.
const maxDetail = 160

// FailureMarker returns the line for stderr that says where and why a run failed
// before or around its job, without a line end. Detail that may hold a secret is
// left out. (Outcome mapping, section 15.4.)
func FailureMarker(stage, class, detail string) string {
	stage, class, detail = FailureFields(stage, class, detail)
	return "guest_eval_fail stage=" + stage + " class=" + class + " detail=" + detail
}

// FailureFields are what a result line has of such a failure: its stage, the class of its
// error, and detail as the marker has it. (Outcome mapping, sections 4.3 and 15.4.)
func FailureFields(stage, class, detail string) (safeStage, safeClass, safe string) {
	if !slices.Contains(stages[:], stage) {
		stage = "cli"
	}
	class = strings.Map(func(r rune) rune {
		if isAlnum(r) || r == '_' {
			return r
		}
		return -1
	}, class)
	if class == "" {
		class = "Exception"
	}
	return stage, class, safeDetail(detail)
}

func safeDetail(detail string) string {
	detail = value.Strip(strings.NewReplacer("\r", " ", "\n", " ").Replace(detail))
	switch {
	case detail == "":
		return "error"
	case strings.Contains(detail, "-----") || looksSecret(detail):
		return "redacted"
	case utf8.RuneCountInString(detail) > maxDetail:
		return string([]rune(detail)[:maxDetail-1]) + "…"
	}
	return detail
}

// looksSecret is generous: what it hides can be found in the logs.
func looksSecret(detail string) bool {
	return IsSecretName(detail) || strings.Contains(strings.ToUpper(detail), "BEARER")
}
