package feed

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// TestTargets: when events go where. (Outcome mapping, section 15.2.)
func TestTargets(t *testing.T) {
	t.Parallel()
	without := func(name, text string) map[string]string {
		all := maps.Clone(env("http://base"))
		all[name] = text
		return all
	}
	const progressPath, logPath = "/evaluation/v1/runs/run%201/progress", "/internal/v1/evaluations/att%2F3/events"
	for _, c := range []struct {
		name, where         string
		env                 map[string]string
		progress, logs      string // the URLs, "" for none and "-" for standard output
		progressErr, logErr string
	}{
		{name: "nothing"},
		{name: "the environment", env: env("https://base:8/x/"),
			progress: "https://base:8/x" + progressPath, logs: "https://base:8/x" + logPath},
		{name: "white space around", env: without("EVAL_RUN_ID", "\u3000run 1\n"),
			progress: "http://base" + progressPath, logs: "http://base" + logPath},
		{name: "blank base", env: without("EVAL_PROGRESS_BASE_URL", " \n"), logs: "http://base" + logPath},
		{name: "blank run", env: without("EVAL_RUN_ID", ""), logs: "http://base" + logPath},
		{name: "blank submission", env: without("EVAL_SUBMISSION_ID", "\x1f"), logs: "http://base" + logPath},
		{name: "blank token", env: without("EVAL_RUN_TOKEN", "\t"), logs: "http://base" + logPath},
		{name: "blank log base", env: without("EVAL_LOG_BASE_URL", " "), progress: "http://base" + progressPath},
		{name: "blank attempt", env: without("EVAL_ATTEMPT_ID", " "), progress: "http://base" + progressPath},
		{name: "blank attempt's token", env: without("EVAL_ATTEMPT_TOKEN", " "), progress: "http://base" + progressPath},
		{name: "standard output", where: "-", env: env("http://base"), progress: "-", logs: "-"},
		{name: "standard output without an environment", where: "-", progress: "-", logs: "-"},
		{name: "a URL", where: "HTTPS://other/%2e/a%20b//", env: env("ftp://ignored"),
			progress: "https://other/%2e/a%20b" + progressPath, logs: "https://other/%2e/a%20b" + logPath},
		{name: "a URL alone", where: "https://other",
			progressErr: "--progress: a receiver needs EVAL_RUN_ID, EVAL_SUBMISSION_ID, EVAL_RUN_TOKEN in the environment",
			logErr:      "--logs: a receiver needs EVAL_ATTEMPT_ID, EVAL_ATTEMPT_TOKEN in the environment"},
		{name: "a step up", env: without("EVAL_RUN_ID", ".."), logs: "http://base" + logPath,
			progressErr: `EVAL_RUN_ID: ".." would be a step in the URL's path, expected a name`},
		{name: "no token for a header", env: without("EVAL_ATTEMPT_TOKEN", "p4ss\nword"), progress: "http://base" + progressPath,
			logErr: "EVAL_ATTEMPT_TOKEN: expected visible ASCII characters only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			progress, err := ProgressTarget(c.where, lookup(c.env))
			checkTarget(t, progress, err, c.progress, c.progressErr)
			logs, err := LogTarget(c.where, lookup(c.env))
			checkTarget(t, logs, err, c.logs, c.logErr)
		})
	}
}

func checkTarget(t *testing.T, got *Target, err error, want, wantErr string) {
	t.Helper()
	url := ""
	switch {
	case got != nil && got.receiver != nil:
		url = got.receiver.url
	case got != nil:
		url = StandardOutput
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if url != want || text != wantErr {
		t.Errorf("got %q and the error %q, want %q and %q", url, text, want, wantErr)
	}
}

// TestBadBases: each has a reason, and none is repeated, for there may be a password in
// it.
func TestBadBases(t *testing.T) {
	t.Parallel()
	for base, why := range map[string]string{
		"http://us:p4ss@host":   "there is a user in it",
		"http://p4ss@host":      "there is a user in it",
		"http://host/?p4ss":     "there is a query",
		"http://host/?":         "there is a query",
		"http://host/#p4ss":     "there is a fragment",
		"http://host/#":         "there is a fragment",
		"ftp://host/p4ss":       "the scheme is another or missing",
		"host/p4ss":             "the scheme is another or missing",
		"http:p4ss":             "there is no host",
		"https://:80/p4ss":      "there is no host",
		"http://us:p4ss@host\n": "this is none",
		"http://ho st/p4ss":     "this is none",
		"http://host:p4ss/":     "this is none",
		" ":                     "the scheme is another or missing",
	} {
		for _, from := range []string{"--progress", "EVAL_PROGRESS_BASE_URL"} {
			where, environment := base, env(base)
			if from != "--progress" {
				where = ""
				if environment[from] = base; strings.TrimSpace(base) != base {
					continue // white space around a variable does not count
				}
			}
			target, err := ProgressTarget(where, lookup(environment))
			want := from + ": expected a base URL such as https://host/path: " + why
			if target != nil || err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "p4ss") {
				t.Errorf("%q: got %v, want %q", base, err, want)
			}
		}
	}
}

// TestTargetsHideTokens: whoever prints a target prints no token.
func TestTargetsHideTokens(t *testing.T) {
	t.Parallel()
	o := options(t, "", env("http://host"))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		text := fmt.Sprintf(verb+verb+verb, o, *o.Progress.receiver, *o.Logs)
		if strings.Contains(text, token) {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}
