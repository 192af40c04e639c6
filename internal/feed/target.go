package feed

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// Target is where events go: standard output, or a receiver.
type Target struct {
	run, submission string    // of progress events; "" where unknown
	receiver        *receiver // nil for standard output
}

// receiver takes events by HTTP.
type receiver struct {
	url         string
	host        string // scheme and host, for messages: a path may be as good as a password
	contentType string
	token       func() string // a function, so that no receiver that is printed shows it
}

// StandardOutput is the value of --progress and --logs that stands for it.
const StandardOutput = "-"

// Lookup finds a variable of an environment, as os.LookupEnv does.
type Lookup = func(name string) (string, bool)

// variables are what describes a receiver: a flag for its base URL, and variables of the
// environment.
type variables struct{ flag, base, id, submission, token string }

// ProgressTarget is where progress events go. where is the value of --progress:
//
//   - "" is the receiver that EVAL_PROGRESS_BASE_URL, EVAL_RUN_ID, EVAL_SUBMISSION_ID and
//     EVAL_RUN_TOKEN describe, and none, which is nil, where one of them is blank;
//   - [StandardOutput] has null for those ids that the environment does not have;
//   - anything else replaces EVAL_PROGRESS_BASE_URL. The others must be there.
//
// Errors name the variable or the flag, and never what the token or the URL is. (Outcome
// mapping, section 15.2.)
func ProgressTarget(where string, lookup Lookup) (*Target, error) {
	v := variables{"--progress", "EVAL_PROGRESS_BASE_URL", "EVAL_RUN_ID", "EVAL_SUBMISSION_ID", "EVAL_RUN_TOKEN"}
	get := stripped(lookup)
	t := &Target{run: get(v.id), submission: get(v.submission)}
	return v.target(t, where, get, endpoint{"/evaluation/v1/runs/", "/progress", "application/json"})
}

// LogTarget is where the log stream goes, by the value of --logs, as [ProgressTarget] has
// it for progress events. The variables are EVAL_LOG_BASE_URL, EVAL_ATTEMPT_ID and
// EVAL_ATTEMPT_TOKEN; the outcome mapping, section 15.3, leaves their names open.
func LogTarget(where string, lookup Lookup) (*Target, error) {
	v := variables{flag: "--logs", base: "EVAL_LOG_BASE_URL", id: "EVAL_ATTEMPT_ID", token: "EVAL_ATTEMPT_TOKEN"}
	return v.target(&Target{}, where, stripped(lookup),
		endpoint{"/internal/v1/evaluations/", "/events", "application/x-ndjson"})
}

// stripped finds variables without white space around them, "" for one that is not there.
func stripped(lookup Lookup) func(name string) string {
	return func(name string) string {
		text, _ := lookup(name)
		return value.Strip(text)
	}
}

// endpoint is what of a receiver is called: the path before and behind the id.
type endpoint struct{ before, behind, contentType string }

// target completes a target that has its ids; it is nil where the environment is to say
// where events go and does not.
func (v variables) target(t *Target, where string, get func(string) string, e endpoint) (*Target, error) {
	if where == StandardOutput {
		return t, nil
	}
	missing := slices.DeleteFunc([]string{v.id, v.submission, v.token}, func(name string) bool {
		return name == "" || get(name) != ""
	})
	from, base := v.flag, where
	switch {
	case where == "" && (len(missing) > 0 || get(v.base) == ""):
		return nil, nil
	case where == "":
		from, base = v.base, get(v.base)
	case len(missing) > 0:
		return nil, fmt.Errorf("%s: a receiver needs %s in the environment", v.flag, strings.Join(missing, ", "))
	}
	u, err := parseBase(base)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	id, token := get(v.id), get(v.token)
	if id == "." || id == ".." {
		return nil, fmt.Errorf("%s: %q would be a step in the URL's path, expected a name", v.id, id)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("%s: expected visible ASCII characters only", v.token)
	}
	host := u.Scheme + "://" + u.Host
	t.receiver = &receiver{
		url:  host + strings.TrimRight(u.EscapedPath(), "/") + e.before + url.PathEscape(id) + e.behind,
		host: host, contentType: e.contentType, token: func() string { return token },
	}
	return t, nil
}

// parseBase reads a base URL. Its errors do not repeat it, for it may hold a password.
func parseBase(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	wrong := ""
	switch {
	case err != nil:
		wrong = "this is none"
	case u.Scheme != "http" && u.Scheme != "https":
		wrong = "the scheme is another or missing"
	case u.Hostname() == "":
		wrong = "there is no host"
	case u.User != nil:
		wrong = "there is a user in it, and the token is what authorises"
	case u.RawQuery != "" || u.ForceQuery:
		wrong = "there is a query"
	case strings.Contains(text, "#"):
		wrong = "there is a fragment"
	default:
		return u, nil
	}
	return nil, fmt.Errorf("expected a base URL such as https://host/path: %s", wrong)
}
