package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/proctor-run/proctor/llm"
)

const (
	// maxMessage bounds the text of an error, in characters.
	maxMessage = 1000
	// longestWait bounds what a server may ask for.
	longestWait = 24 * time.Hour
)

// Failure is the error of an exchange that brought no answer, with the error that its
// sender returned.
func (c *Conn) Failure(x *Exchange, err error) *llm.Error {
	if x.Err != nil || x.Status == 0 {
		if x.Err != nil {
			err = x.Err
		}
		return c.broken(x, err)
	}
	if x.Status/100 == 2 {
		text := "the answer cannot be read"
		if err != nil {
			text += ": " + err.Error()
		}
		return c.Unusable(x, text)
	}
	p := problemOf(x.Body)
	e := &llm.Error{Model: c.Name, Status: x.Status, Kind: kindOf(x.Status, p)}
	e.RetryAfter = c.retryAfter(x.Header, p)
	if e.Kind == llm.Quota && e.RetryAfter > 0 && !p.exhausted() {
		e.Kind = llm.RateLimited
	}
	e.Message = c.clean(p.message)
	switch {
	case x.Status/100 == 3:
		e.Message = "the server sends elsewhere, which is not followed; set the address to the right one"
	case e.Message == "":
		e.Message = "the server said no more: " + http.StatusText(x.Status)
	}
	return e
}

// Unusable is the error of an answer that came whole but is none: the error in it, if
// there is one, else what text says.
func (c *Conn) Unusable(x *Exchange, text string) *llm.Error {
	p := problemOf(x.Body)
	if !p.explicit {
		return &llm.Error{Kind: llm.Transient, Model: c.Name, Status: x.Status, Message: c.clean(text)}
	}
	if p.message == "" {
		p.message = text
	}
	status := x.Status
	if n, err := strconv.Atoi(p.code); err == nil && n >= 400 && n < 600 {
		status = n
	}
	kind := kindOf(status, p)
	if status/100 == 2 && kind == llm.BadRequest {
		kind = llm.Transient
	}
	return &llm.Error{Kind: kind, Model: c.Name, Status: status, Message: c.clean(p.message), RetryAfter: c.retryAfter(x.Header, p)}
}

// Fail is an error of a kind.
func (c *Conn) Fail(kind llm.Kind, x *Exchange, text string) *llm.Error {
	return &llm.Error{Kind: kind, Model: c.Name, Status: x.Status, Message: c.clean(text)}
}

// broken is the error of a connection. The cause is kept unless its text has the key.
func (c *Conn) broken(x *Exchange, err error) *llm.Error {
	e := &llm.Error{Kind: llm.Transient, Model: c.Name, Status: x.Status, Message: "the connection failed"}
	if err == nil {
		return e
	}
	text := err.Error()
	e.Message = c.clean(text)
	if c.redact(text) == text {
		e.Err = err
	}
	return e
}

// clean makes a text of a server fit to be shown.
func (c *Conn) clean(text string) string {
	text = c.redact(strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.TrimSpace(text))
	if utf8.RuneCountInString(text) <= maxMessage {
		return text
	}
	return string([]rune(text)[:maxMessage]) + "…"
}

func (c *Conn) redact(text string) string { return WithoutKey(text, c.Key) }

// WithoutKey takes a key out of what a server says.
func WithoutKey(text, key string) string {
	if key == "" {
		return text
	}
	for _, form := range []string{key, url.QueryEscape(key), url.PathEscape(key)} {
		text = strings.ReplaceAll(text, form, "***")
	}
	return text
}

// retryAfter is how long the server asks to wait.
func (c *Conn) retryAfter(h http.Header, p problem) time.Duration {
	if d, ok := seconds(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	text := h.Get("Retry-After")
	if d, ok := seconds(text, time.Second); ok {
		return d
	}
	if t, err := http.ParseTime(text); err == nil && c.Now != nil {
		return min(max(0, t.Sub(c.Now())), longestWait)
	}
	return p.retry
}

func seconds(text string, unit time.Duration) (time.Duration, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(f) || f < 0 {
		return 0, false
	}
	return time.Duration(min(f*float64(unit), float64(longestWait))), true
}

// problem is what a server tells of a failure.
type problem struct {
	// explicit: the answer is one that tells of an error.
	explicit                    bool
	code, class, param, message string
	// reasons are further codes and texts, which are not shown.
	reasons string
	retry   time.Duration
}

// all is everything said, in lower case.
func (p problem) all() string {
	return strings.ToLower(strings.Join([]string{p.code, p.class, p.message, p.reasons}, "\n"))
}

// problemOf reads the forms in which servers tell of errors: an object "error" with a
// message, type, code, parameter, status or details; the same without "error" around it; a
// text; a list of one of these.
func problemOf(body []byte) problem {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return problem{message: string(body[:min(len(body), 8*maxMessage)])}
	}
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	m, _ := v.(map[string]any)
	p := problem{}
	switch e := m["error"].(type) {
	case map[string]any:
		m, p.explicit = e, true
	case string:
		p.message, p.explicit = e, true
	}
	p.read(m)
	return p
}

func (p *problem) read(m map[string]any) {
	p.code, p.class, p.param = text(m["code"]), text(m["type"]), text(m["param"])
	for _, key := range []string{"message", "detail", "msg"} {
		if p.message == "" {
			p.message = text(m[key])
		}
	}
	p.reasons = text(m["status"])
	if meta, ok := m["metadata"].(map[string]any); ok {
		p.reasons += "\n" + text(meta["raw"])
	}
	details, _ := m["details"].([]any)
	for _, d := range details {
		p.detail(d)
	}
}

// detail reads one of the details that Gemini adds.
func (p *problem) detail(v any) {
	m, _ := v.(map[string]any)
	p.reasons += "\n" + text(m["reason"])
	if d, err := time.ParseDuration(text(m["retryDelay"])); err == nil && d > 0 {
		p.retry = min(d, longestWait)
	}
	violations, _ := m["violations"].([]any)
	for _, v := range violations {
		if v, ok := v.(map[string]any); ok {
			p.reasons += "\n" + text(v["quotaId"])
		}
	}
}

// text is a member that may be a text, a number, or something larger.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	data, err := JSON(v)
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(data))
}

// tooLong are the words for a conversation that is too long: those of Harbor's agents,
// section 5.3, and those of other servers.
func tooLong(text string) bool {
	return contains(text,
		"context length exceeded", "context_length_exceeded", "maximum context length",
		"`inputs` tokens + `max_new_tokens`", "model's context length", "prompt is too long",
		"input is too long for requested model",
		"exceeds the context window", "exceed context limit", "context window exceeded",
		"exceeds the maximum number of tokens allowed", "exceed_context_size",
		"exceeds the available context size", "model_max_prompt_tokens_exceeded")
}

// kindOf finds the kind of a failure: by what is said, else by the status.
func kindOf(status int, p problem) llm.Kind {
	said := p.all()
	switch {
	case status == http.StatusTooManyRequests || contains(said, "rate_limit_exceeded"):
		if p.exhausted() || contains(said, "billing", "exceeded your current quota") {
			return llm.Quota
		}
		return llm.RateLimited
	case status >= 500:
		return llm.Transient
	case tooLong(said):
		return llm.ContextLength
	case p.exhausted():
		return llm.Quota
	case contains(said, "content_filter", "content_policy", "content management policy", "moderation"):
		return llm.Refused
	case contains(said, "api_key_invalid", "invalid_api_key"):
		return llm.Auth
	case contains(said, "model_not_found"):
		return llm.NotFound
	case contains(said, "server_error", "overloaded_error"):
		return llm.Transient
	}
	return kindOfStatus(status)
}

func kindOfStatus(status int) llm.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return llm.Auth
	case http.StatusPaymentRequired:
		return llm.Quota
	case http.StatusNotFound:
		return llm.NotFound
	case http.StatusRequestEntityTooLarge:
		return llm.ContextLength
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly:
		return llm.Transient
	}
	return llm.BadRequest
}

// exhausted: nothing is left, and waiting for a minute brings nothing.
func (p problem) exhausted() bool {
	return contains(p.all(), "insufficient_quota", "insufficient_credits", "credit balance is too low",
		"insufficient balance", "billing_hard_limit_reached", "billing_not_active", "billing_error", "perday")
}

// refusal is what is said of a parameter that is not known or not supported, in lower
// case; empty where the failure is of another kind.
func (p problem) refusal() string {
	said := p.all() + "\n" + strings.ToLower(p.param)
	if contains(said, "unrecognized request argument", "unrecognized", "unsupported", "not supported",
		"does not support", "doesn't support", "unknown parameter", "unknown name", "unknown field",
		"unexpected keyword", "not permitted", "deprecated", "cannot be specified", "is not enabled") {
		return said
	}
	return ""
}

func contains(text string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// names tells whether a text, which is in lower case, has one of the words whole.
func names(text string, words []string) bool {
	for _, w := range words {
		w = strings.ToLower(w)
		for rest := text; ; {
			before, after, found := strings.Cut(rest, w)
			if !found {
				break
			}
			r, _ := utf8.DecodeLastRuneInString(before)
			s, _ := utf8.DecodeRuneInString(after)
			if !inWord(r) && !inWord(s) {
				return true
			}
			rest = after
		}
	}
	return false
}

func inWord(r rune) bool {
	return r != utf8.RuneError && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r))
}
