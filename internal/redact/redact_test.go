package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/internal/redact"
)

func TestForms(t *testing.T) {
	t.Parallel()
	const value = "p\"ä\\ <w/ör>\n+d&😀~"
	set := redact.New([]redact.Secret{{Name: "PASS", Value: value}})
	goJSON, err := json.Marshal(map[string]string{"v": value})
	if err != nil {
		t.Fatal(err)
	}
	var plainJSON bytes.Buffer
	enc := json.NewEncoder(&plainJSON)
	enc.SetEscapeHTML(false)
	if err := errors.Join(enc.Encode(value), err); err != nil {
		t.Fatal(err)
	}
	twice, err := json.Marshal(string(goJSON))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		"plain": value, "encoding/json": string(goJSON), "without HTML": plainJSON.String(), "twice": string(twice),
		"Python":        `p\"\u00e4\\ <w/\u00f6r>\n+d&\ud83d\ude00~`,
		"PHP":           `p\"\u00e4\\ <w\/\u00f6r>\n+d&\ud83d\ude00~`,
		"hex":           hex.EncodeToString([]byte(value)),
		"HEX":           strings.ToUpper(hex.EncodeToString([]byte(value))),
		"query":         url.QueryEscape(value),
		"path":          url.PathEscape(value),
		"lower":         strings.ToLower(url.QueryEscape("😀")) + url.QueryEscape(value),
		"quote":         "p%22%C3%A4%5C%20%3Cw/%C3%B6r%3E%0A%2Bd%26%F0%9F%98%80~",
		"quote, lower":  "p%22%c3%a4%5c%20%3cw/%c3%b6r%3e%0a%2bd%26%f0%9f%98%80~",
		"bytes of them": percent(value),
	}
	for _, e := range []struct {
		name string
		enc  *base64.Encoding
	}{{"base64", base64.StdEncoding}, {"base64 of URLs", base64.RawURLEncoding}} {
		for before := range 4 {
			for behind := range 4 {
				cases[fmt.Sprint(e.name, before, behind)] = e.enc.EncodeToString([]byte("user"[:before] + value + "tail"[:behind]))
			}
		}
	}
	for name, text := range cases {
		got := set.String("before " + text + " behind")
		if !strings.Contains(got, "[REDACTED:PASS]") || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " behind") {
			t.Errorf("%s: %q became %q", name, text, got)
		}
	}
}

func percent(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

func TestReplacement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		secrets  []redact.Secret
		in, want string
	}{
		{"short values are text", []redact.Secret{{"A", "1234567"}}, "1234567", "1234567"},
		{"the longest counts", []redact.Secret{{"A", "password"}, {"B", "password-long"}}, "password-long password", "[REDACTED:B] [REDACTED:A]"},
		{"overlapping", []redact.Secret{{"A", "abcdefgh"}, {"B", "efghijklmn"}}, "xabcdefghijklmny", "x[REDACTED:A]y"},
		{"one behind the other", []redact.Secret{{"A", "abcdefgh"}}, "abcdefghabcdefgh", "[REDACTED:A][REDACTED:A]"},
		{"of itself", []redact.Secret{{"A", "aaaaaaaa"}}, "baaaaaaaaaaaaab", "b[REDACTED:A]b"},
		{"nothing in a mark", []redact.Secret{{"A", "REDACTED:B"}, {"B", "12345678x"}}, "12345678x", "[REDACTED:B]"},
		{"first name", []redact.Secret{{"A", "12345678x"}, {"B", "12345678x"}}, "12345678x", "[REDACTED:A]"},
		{"names are made harmless", []redact.Secret{{`a"\ b`, "12345678x"}}, "12345678x", "[REDACTED:a___b]"},
		{
			"lines", []redact.Secret{{"KEY", "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nshort\n-----END PRIVATE KEY-----\n"}},
			"x MIIEvQIBADANBgkqhkiG9w0 short -----BEGIN PRIVATE KEY-----", "x [REDACTED:KEY] short -----BEGIN PRIVATE KEY-----",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := redact.New(c.secrets).String(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestNone(t *testing.T) {
	t.Parallel()
	for _, secrets := range [][]redact.Secret{nil, {{"A", "short"}}} {
		set := redact.New(secrets)
		in := []byte("short text")
		if set != nil || &set.Bytes(in)[0] != &in[0] || set.String("x") != "x" || set.Has("x") || !errors.Is(set.Error(fs.ErrExist), fs.ErrExist) {
			t.Errorf("a set of %v is not free", secrets)
		}
		var out bytes.Buffer
		w := set.Writer(&out)
		if n, err := w.Write(in); n != len(in) || err != nil || out.String() != string(in) {
			t.Errorf("Write = %d, %v; %q", n, err, out.String())
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	set := redact.New([]redact.Secret{{"TOKEN", "very-secret"}})
	err := set.Error(fmt.Errorf("opening very-secret: %w", fs.ErrNotExist))
	if err.Error() != "opening [REDACTED:TOKEN]: file does not exist" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestMarked(t *testing.T) {
	t.Parallel()
	text := "a " + redact.Mark("ONE") + redact.Mark("two.x") + " [REDACTED:no mark] [REDACTED:"
	if got := redact.Marked(text); fmt.Sprint(got) != "[ONE two.x]" {
		t.Errorf("got %v", got)
	}
}

// naive redacts as the package says, position by position.
func naive(values []string, text string) string {
	var b strings.Builder
	end := 0
	for i := range len(text) {
		longest := -1
		for k, v := range values {
			if strings.HasPrefix(text[i:], v) && (longest < 0 || len(v) > len(values[longest])) {
				longest = k
			}
		}
		if longest >= 0 {
			if i >= end {
				b.WriteString(redact.Mark(fmt.Sprint(longest)))
			}
			end = max(end, i+len(values[longest]))
		}
		if i >= end {
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

func TestAnyChunksGiveWhatNaiveGives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// Letters outside of base64's, hex and escapes: the value is its only form that
		// is made of them.
		word := rapid.StringMatching(`[*!]{8,12}`)
		values := rapid.SliceOfNDistinct(word, 1, 4, rapid.ID).Draw(t, "values")
		secrets := make([]redact.Secret, len(values))
		for i, v := range values {
			secrets[i] = redact.Secret{Name: fmt.Sprint(i), Value: v}
		}
		set := redact.New(secrets)
		part := rapid.OneOf(rapid.StringMatching(`[*! ]{0,20}`), rapid.SampledFrom(values))
		chunks := rapid.SliceOf(part).Draw(t, "chunks")
		text := strings.Join(chunks, "")
		want := naive(values, text)
		if got := set.String(text); got != want {
			t.Fatalf("%q became %q, want %q", text, got, want)
		}
		var out bytes.Buffer
		w := set.Writer(&out)
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "chunk")
			if _, err := io.WriteString(w, rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want {
			t.Fatalf("as a stream %q became %q, want %q", text, got, want)
		}
	})
}

func TestStreamKeepsBackOnlyWhatMayBeASecret(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := redact.New([]redact.Secret{{"A", "sk-verysecret"}}).Writer(&out)
	for _, c := range []struct{ in, want string }{
		{"hello\n", "hello\n"},
		{"key sk-ver", "hello\nkey "},
		{"bose\n", "hello\nkey sk-verbose\n"},
		{"sk-verysecret\n", "hello\nkey sk-verbose\n[REDACTED:A]\n"},
	} {
		if _, err := io.WriteString(w, c.in); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Errorf("after %q: %q, want %q", c.in, out.String(), c.want)
		}
	}
}

// logText is what agents print: paths, times, JSON, code, some hexadecimal.
func logText(n int) []byte {
	r := rand.New(rand.NewSource(1))
	var b bytes.Buffer
	for b.Len() < n {
		switch r.Intn(4) {
		case 0:
			fmt.Fprintf(&b, "2026-06-09T10:00:%02d.%06dZ INFO  agent.loop: step %d finished in %.3fs (tokens=%d)\n", r.Intn(60), r.Intn(1e6), r.Intn(200), r.Float64(), r.Intn(1e5))
		case 1:
			fmt.Fprintf(&b, `{"type":"tool_result","id":"call_%08x","content":"total 48\ndrwxr-xr-x 2 root root 4096 Jun  9 10:00 src\n"}`+"\n", r.Uint32())
		case 2:
			b.WriteString("\tif err := os.WriteFile(filepath.Join(dir, \"result.json\"), data, 0o644); err != nil {\n\t\treturn fmt.Errorf(\"writing: %w\", err)\n\t}\n")
		default:
			fmt.Fprintf(&b, "  Downloading https://files.pythonhosted.org/packages/%02x/%02x/%016x/numpy-2.1.%d-cp312.whl (16.0 MB)\n", r.Intn(256), r.Intn(256), r.Uint64(), r.Intn(9))
		}
	}
	return b.Bytes()
}

func twenty() []redact.Secret {
	r := rand.New(rand.NewSource(2))
	secrets := make([]redact.Secret, 20)
	for i := range secrets {
		raw := make([]byte, 24)
		_, _ = r.Read(raw)
		secrets[i] = redact.Secret{Name: fmt.Sprintf("KEY_%d", i), Value: "sk-" + base64.RawURLEncoding.EncodeToString(raw)}
	}
	return secrets
}

func BenchmarkBytes20(b *testing.B) {
	text, set := logText(16<<20), redact.New(twenty())
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		set.Bytes(text)
	}
}

func BenchmarkWriter20(b *testing.B) {
	text, set := logText(16<<20), redact.New(twenty())
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		w := set.Writer(io.Discard)
		for rest := text; len(rest) > 0; {
			n := min(len(rest), 32<<10)
			_, _ = w.Write(rest[:n])
			rest = rest[n:]
		}
		_ = w.Close()
	}
}

func BenchmarkNew20(b *testing.B) {
	secrets := twenty()
	for b.Loop() {
		redact.New(secrets)
	}
}
