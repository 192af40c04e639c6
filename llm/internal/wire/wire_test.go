package wire

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want bool
	}{
		{"max_tokens", true},
		{"'max_tokens' is unknown", true},
		{"max_tokens_x, max_tokens", true},
		{"max_tokens_x", false},
		{"xmax_tokens", false},
		{"max_tokensé", false},
		{"", false},
	} {
		if got := names(c.text, []string{"other", "max_tokens"}); got != c.want {
			t.Errorf("names(%q) = %v", c.text, got)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	c, err := Dial(llm.Endpoint{Name: "p/m", Model: "m"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		ms, s string
		want  time.Duration
	}{
		{"1500", "9", 1500 * time.Millisecond},
		{"x", "9", 9 * time.Second},
		{"", "", 12 * time.Second}, // of the body
		// Without a clock a date tells nothing.
		{"", "Sun, 01 Mar 2026 12:00:30 GMT", 12 * time.Second},
	} {
		h := http.Header{}
		h.Set("Retry-After-Ms", test.ms)
		h.Set("Retry-After", test.s)
		if got := c.retryAfter(h, problem{retry: 12 * time.Second}); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

func TestBody(t *testing.T) {
	t.Parallel()
	b := &Body{}
	b.Set("b", "<&>")
	b.Set("a", nil)
	b.SetValue("c", value.List{value.Str("ü"), value.NewInt(1)})
	got, err := b.encode()
	if want := `{"a":null,"b":"<&>","c":["\u00fc",1]}`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":           `{}`,
		` {"a": 1} `: `{"a": 1}`,
		`[1]`:        `{"invalid_arguments":"[1]"}`,
		`{"a"`:       `{"invalid_arguments":"{\"a\""}`,
	} {
		if got := Arguments(llm.ToolCall{Arguments: text}); string(got) != want {
			t.Errorf("Arguments(%q) = %s", text, got)
		}
	}
}

func TestPictures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		img  llm.Image
		want Picture
		link string
	}{
		{llm.Image{Data: []byte("\x89PNG\r\n\x1a\n")}, Picture{MediaType: "image/png", Base64: "iVBORw0KGgo="}, "data:image/png;base64,iVBORw0KGgo="},
		{llm.Image{URL: "data:image/gif;base64,R0lG"}, Picture{MediaType: "image/gif", Base64: "R0lG"}, "data:image/gif;base64,R0lG"},
		{llm.Image{URL: "data:text/plain,x"}, Picture{URL: "data:text/plain,x"}, "data:text/plain,x"},
		{llm.Image{URL: "https://h/a", MediaType: "image/x"}, Picture{URL: "https://h/a", MediaType: "image/x"}, "https://h/a"},
	} {
		if got := PictureOf(&c.img); got != c.want || got.Link() != c.link {
			t.Errorf("%+v: %+v, %s", c.img, got, got.Link())
		}
	}
}

// Whatever a server says, the error can be shown: it is bounded, has no key and no control
// characters, and a kind.
func FuzzFailure(f *testing.F) {
	f.Add(400, "", `{"error":{"message":"the key s3cret"}}`)
	f.Add(429, "1e999", `[{"error":{"details":[{"retryDelay":"9999999h","violations":[{"quotaId":1}]}]}}]`)
	f.Add(200, "x", `{"error":"x"}`)
	f.Fuzz(func(t *testing.T, status int, wait, body string) {
		c, err := Dial(llm.Endpoint{Name: "p/m", Model: "m", Key: "s3cret"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if status <= 0 {
			return
		}
		e := c.Failure(&Exchange{Status: status, Header: http.Header{"Retry-After": {wait}}, Body: []byte(body)}, nil)
		if e.Kind == "" || e.RetryAfter < 0 || e.RetryAfter > longestWait {
			t.Errorf("%+v", e)
		}
		text := e.Message
		if !utf8.ValidString(text) || utf8.RuneCountInString(text) > maxMessage+1 || strings.Contains(text, "s3cret") || strings.ContainsAny(text, "\x00\x1b\r") {
			t.Errorf("message %q", text)
		}
		problemOf([]byte(body)).refusal()
	})
}

func FuzzBody(f *testing.F) {
	f.Add("key", "value")
	f.Fuzz(func(t *testing.T, key, text string) {
		b := &Body{}
		b.Set(key, text)
		b.SetValue("extra", value.Str(text))
		got, err := b.encode()
		if err != nil || !json.Valid(got) {
			t.Errorf("%s, %v", got, err)
		}
	})
}
