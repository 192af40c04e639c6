package logs

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestFailureType(t *testing.T) {
	t.Parallel()
	const (
		auth, missing, rate, long = "AuthenticationError", "NotFoundError", "RateLimitError", "ContextLengthExceededError"
		policy, conn, server, bad = "ContentPolicyViolationError", "APIConnectionError", "InternalServerError", "BadRequestError"
	)
	for text, want := range map[string]string{
		"": "", "done": "", "wrote 500 lines in 401 ms": "", "Error: ENOENT: no such file or directory, open '/app/x'": "",
		"bash: foo: command not found": "", "FileNotFoundError: x": "", "ModuleNotFoundError: No module named 'x'": "", "exit code 1": "",
		"listening on http://127.0.0.1:4010/": "", "permission denied: ./run.sh": "", "error 40100": "", "code 404x": "",
		"Model metadata for `gpt-9` not found. Defaulting to fallback metadata": "",

		"Invalid API key · Fix external API key":                             auth,
		"401 Incorrect API key provided":                                     auth,
		"[API Error: 401 status code (no body)]":                             auth,
		"Incorrect API key provided (HTTP 403)":                              auth,
		`{"error":{"code":401,"message":"x","status":"UNAUTHENTICATED"}}`:    auth,
		"API Error: 403 Forbidden":                                           auth,
		"OAuth token has expired. Please run /login":                         auth,
		"litellm.AuthenticationError: no key":                                auth,
		"API key not valid. Please pass a valid API key. (INVALID_ARGUMENT)": auth,

		"The model `gpt-9` does not exist or you do not have access to it.": missing,
		"404 No endpoints found": missing,
		"There's an issue with the selected model (claude-x). It may not exist":              missing,
		`model "qwen9" not found, try pulling it first`:                                      missing,
		"models/gemini-9 is not found for API version v1beta":                                missing,
		"ProviderModelNotFoundError":                                                         missing,
		`API Error: 404 {"type":"error","error":{"type":"not_found_error","message":"m: x"}`: missing,

		"exceeded retry limit, last status: 429 Too Many Requests":        rate,
		"429 Provider returned error":                                     rate,
		"You've hit your usage limit. Upgrade to Pro":                     rate,
		"Credit balance is too low":                                       rate,
		"You exceeded your current quota, please check your plan":         rate,
		`{"code":429,"status":"RESOURCE_EXHAUSTED"}`:                      rate,
		"Error: 402 Insufficient credits":                                 rate,
		"503 status code (no body)\nretrying\nRate limit reached for x":   rate,
		"Prompt is too long":                                              long,
		`400 {"message":"This model's maximum context length is 8"}`:      long,
		"maximum context length is 8192 tokens (HTTP 400)":                long,
		"Codex ran out of room in the model's context window. Start anew": long,
		"input token count (9) exceeds the maximum number of tokens":      long,
		"API Error: appears to violate our Usage Policy":                  policy,
		"finish_reason: content_filter":                                   policy,

		"API Error: Connection error.":                                                  conn,
		"connect ECONNREFUSED 127.0.0.1:4000":                                           conn,
		"TypeError: fetch failed":                                                       conn,
		"stream disconnected before completion: error sending request":                  conn,
		"getaddrinfo EAI_AGAIN api.example.com":                                         conn,
		"Request timed out.":                                                            conn,
		"self-signed certificate in certificate chain":                                  conn,
		`API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}`:           server,
		"API Error (500 Internal Server Error)":                                         server,
		"unexpected status 503 Service Unavailable":                                     server,
		`{"statusCode":502}`:                                                            server,
		"HTTP/1.1 504":                                                                  server,
		"400 Bad Request":                                                               bad,
		`API Error: 400 {"type":"invalid_request_error","message":"tools.0: required"}`: bad,
		`"statusCode":422`:                                                              bad,

		"429 Too Many Requests\n401 Unauthorized": auth,
		"401 Unauthorized\n429 Too Many Requests": rate,
		"rate limit reached, then fetch failed":   conn,
		"fetch failed, then rate limit reached":   rate,
	} {
		if got := FailureType(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := FailureType("401 Unauthorized " + strings.Repeat("x", 2*maxFailure)); got != "" {
		t.Errorf("text before the end is searched: %q", got)
	}
}

// TestOnlyStderrTells has runs that printed no record at all.
func TestOnlyStderrTells(t *testing.T) {
	t.Parallel()
	for agent, file := range map[string]string{
		"cline-cli": "cline.txt", "continue": "stderr.txt", "copilot-cli": "copilot-cli.jsonl", "qwen-coder": "qwen-code.txt",
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, file), "(node:1) Warning: something\n  Error: no API key: 401 Unauthorized \n    at run (x.js:1)\n\n")
		got, err := convert(agent, Input{Dir: dir, Instruction: "do it"})
		if err != nil || got.Trajectory != nil || got.Failure != "Error: no API key: 401 Unauthorized" {
			t.Errorf("%s: %v, %+v", agent, err, got)
		}
	}
}

// TestComplaint tells complaints from what agents print of their work.
func TestComplaint(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"Error: x": true, "✖ API Error: x": true, "Error loading config.toml: x": true, "fatal: x": true, "TypeError: x is no function": true,
		"Invalid API key · Please run /login": true, "401 Unauthorized": true, "Connection refused": true,
		"I mended the rate limiter, which says 429 Too Many Requests": false, "Not all is done": false, "Error handling is better now": false,
		"Invalid input is refused": false, `{"type":"x","text":"Error: 401 Unauthorized"}`: false, "Done": false,
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "stderr.txt"), "\n"+line+"\nat x\n")
		got := complaint(&Dir{path: dir, left: maxLogs}, "stderr.txt", "nowhere")
		if got != "" != want || want && got != line {
			t.Errorf("%q: got %q", line, got)
		}
	}
}

// TestLongFailure has an agent that says more of its failure than is kept.
func TestLongFailure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "stderr.txt"), `{"status":"error","message":"`+strings.Repeat("é", maxFailure)+`"}`)
	got, err := convert("continue", Input{Dir: dir})
	if err != nil || got.Failure != strings.Repeat("é", maxFailure/2)+"…" {
		t.Errorf("%v, %d bytes", err, len(got.Failure))
	}
}
