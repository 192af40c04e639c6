package logs

import (
	"regexp"
	"strings"
	"sync"
)

// maxFailure is how much of the end of a text is searched, and kept of what an agent
// says of why its run ended, in bytes.
const maxFailure = 16 << 10

// failureTypes are the names under which results record failures of calls of models,
// which are those of package llm, and the words that tell them. Words are matched
// without regard to case.
var failureTypes = []struct {
	name  string
	words func() *regexp.Regexp
}{
	{"AuthenticationError", anyOf(
		`unauthorized`, `unauthenticated`, `\bforbidden\b`, `authentication[_ ]?error`, `authentication[_ ](has )?failed`, `permission[_ ]?denied[_ ]?error`,
		`permission_(denied|error)`, `(invalid|incorrect|no|missing|wrong|expired)[_ ](x-)?api[_ -]?key`, `api[_ ]key[_ ](is )?(not valid|invalid|missing|expired|required)`,
		`invalid[_ ](bearer|access|auth)[_ ]?token`, `token (has|is) expired`, `invalid authentication`, `invalid credentials`, `no auth credentials`,
		`could not resolve authentication`, `not logged in`, `(please )?run /login`, `\(auth\)`,
	)},
	{"NotFoundError", anyOf(
		`\bNotFoundError`, `model[_ ]?not[_ ]?found`, `not_found_error`, `no such model`, `unknown model`, `issue with the selected model`,
		`\bmodels?[:/ ] ?['"\x60]?[\w./:@-]+['"\x60]? (was |is |could )?(not (be )?found|does not exist|not (supported|available))`,
	)},
	{"RateLimitError", anyOf(
		`rate[ _-]?limit`, `too many requests`, `resource[_ ]exhausted`, `exceeded your current quota`, `quota exceeded`, `insufficient[_ ](quota|credits|balance)`,
		`usage[ _]limit`, `credit balance is too low`, `out of credits`, `billing_(hard_limit_reached|not_active|error)`,
	)},
	{"ContextLengthExceededError", anyOf(
		`context[_ ]?(length|window)[_ ]?exceeded`, `maximum context length`, `model.{0,3}s context (length|window)`, `prompt is too long`, `input is too long`,
		`exceeds? the context (window|size|length|limit)`, `exceed context limit`, `exceeds the maximum number of tokens`, `exceed_context_size`,
		`exceeds the available context size`, `model_max_prompt_tokens_exceeded`, `context_window_exceeded`,
	)},
	{"ContentPolicyViolationError", anyOf(
		`content[_ ]?policy`, `content[_ ]filter(ed|ing)?\b`, `content management policy`, `violates? our usage polic`, `blocked (due to|by|for) (the )?safety`,
	)},
	{"APIConnectionError", anyOf(
		`\bE(CONNREFUSED|CONNRESET|CONNABORTED|NOTFOUND|TIMEDOUT|HOSTUNREACH|NETUNREACH|PIPE)\b`, `\bEAI_AGAIN\b`, `\bUND_ERR_`, `API(Connection|Timeout)(Timeout)?Error`,
		`connection (was |has been )?(refused|reset|closed|aborted|timed out|error)`, `(error|failed) (sending request|to connect)`, `(unable|failed) to connect`,
		`fetch failed`, `network (error|is unreachable)`, `socket hang up`, `no such host`, `could not resolve host`, `name or service not known`,
		`temporary failure in name resolution`, `getaddrinfo`, `stream disconnected`, `request timed out`, `tls handshake`, `self[-_ ]signed[-_ ]cert`,
		`unable to verify the first certificate`, `certificate (has expired|verify failed)`,
	)},
	{"InternalServerError", anyOf(
		`internal[_ ]?server[_ ]?error`, `bad gateway`, `service[_ ]?(is )?(currently |temporarily )?unavailable`, `gateway time-?out`, `overloaded`, `\bat capacity\b`, `\bserver_error`,
	)},
}

// badRequest has words of refusals that say nothing else. They count only where nothing
// else is known.
var badRequest = anyOf(`bad[_ ]?request`, `invalid_request_error`, `invalid_argument`)

// statusCodes find statuses of HTTP: behind a word that says that it is one, or at the
// beginning of a line that goes on as a message does.
var statusCodes = []*regexp.Regexp{
	regexp.MustCompile(`(?i)(?:status|code|http(?:/[0-9.]+)?|error)["']?[\s:=(\[]{0,4}([45][0-9]{2})(?:$|[^0-9A-Za-z_.%]|\.(?:$|[^0-9]))`),
	regexp.MustCompile(`(?m)^[^\w\n]{0,4}([45][0-9]{2}):? (?:[A-Z{"]|status)`),
}

// anyOf compiles on first use: most programs never need it, and these patterns are large.
func anyOf(words ...string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?i)" + strings.Join(words, "|")) })
}

// FailureType classifies what an agent says of why its run ended, by the words and the
// statuses of HTTP that models' servers and their libraries use. The result is a name
// under which results record such failures, as those of package llm do:
// AuthenticationError, NotFoundError, RateLimitError (also where an account has nothing
// left), ContextLengthExceededError, ContentPolicyViolationError, APIConnectionError,
// InternalServerError or BadRequestError; empty where nothing is known. What is said
// last counts, as agents try again and end with what ended them; that a request was bad
// counts only if nothing else is said. Of a long text the end is searched.
func FailureType(text string) string {
	if len(text) > maxFailure {
		text = text[len(text)-maxFailure:]
	}
	found, at := "", -1
	for _, t := range failureTypes {
		for _, m := range t.words().FindAllStringIndex(text, -1) {
			if m[0] > at {
				found, at = t.name, m[0]
			}
		}
	}
	bad := badRequest().MatchString(text)
	for _, codes := range statusCodes {
		for _, m := range codes.FindAllStringSubmatchIndex(text, -1) {
			name := typeOfStatus(text[m[2]:m[3]])
			if name == "" {
				bad = true
			} else if m[2] > at {
				found, at = name, m[2]
			}
		}
	}
	if found == "" && bad {
		return "BadRequestError"
	}
	return found
}

// typeOfStatus is the failure that a status stands for; empty for those that say only
// that a request was bad.
func typeOfStatus(status string) string {
	switch status {
	case "401", "403":
		return "AuthenticationError"
	case "402", "429":
		return "RateLimitError"
	case "404":
		return "NotFoundError"
	case "408", "409", "425":
		return "InternalServerError"
	case "413":
		return "ContextLengthExceededError"
	}
	if strings.HasPrefix(status, "5") {
		return "InternalServerError"
	}
	return ""
}

// errorLine finds what programs print of errors. A line that only begins as a complaint
// may, must also have words or a status of one: agents also print what they worked on.
var (
	errorLine  = regexp.MustCompile(`(?i)^\W{0,8}(\w{1,20} ){0,3}(\w*error|fatal)\b[^:]{0,40}:`)
	beginsAsIt = regexp.MustCompile(`(?i)^\W{0,8}(\w{1,20} ){0,2}(error|fatal|failed|[45]\d\d|authentication|connection|request|incorrect|invalid|missing|no|not)\b`)
)

// complaint is the last line of what a program printed that says what went wrong, for
// runs that came to nothing else.
func complaint(d *Dir, files ...string) string {
	last := ""
	for _, name := range files {
		data := d.Read(name)
		for line := range strings.Lines(string(data[max(0, len(data)-4*maxFailure):])) {
			line = strings.TrimSpace(line)
			if errorLine.MatchString(line) || beginsAsIt.MatchString(line) && FailureType(line) != "" {
				last = line
			}
		}
	}
	return last
}

// shortened is the beginning of what an agent says of why its run ended.
func shortened(failure string) string {
	if len(failure) <= maxFailure {
		return failure
	}
	return strings.ToValidUTF8(failure[:maxFailure], "") + "…"
}
