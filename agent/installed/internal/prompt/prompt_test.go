package prompt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent/installed/internal/prompt"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/value"
)

func TestVectors(t *testing.T) {
	t.Parallel()
	v, err := value.Decode(vectors.File(t, "agents/prompt-template.json"))
	if err != nil {
		t.Fatal(err)
	}
	cases := v.(value.List)
	if len(cases) == 0 {
		t.Fatal("there is no case")
	}
	for _, item := range cases {
		c := item.(*value.Object)
		t.Run(vectors.Str(c, "name"), func(t *testing.T) {
			t.Parallel()
			got, err := prompt.Render(vectors.Str(c, "template"), vectors.Str(c, "instruction"))
			if want := vectors.Str(c, "error_type"); exception.TypeOf(err) != want || (err != nil) != (want != "") {
				t.Fatalf("got %q, %v, want error %q", got, err, want)
			}
			if want := vectors.Str(c, "output"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	const said = " Do\n\nit \u2028now\r\nß"
	for template, want := range map[string]string{
		"{{\n instruction\t}}":                                                                             said,
		"a{#- {{ x }} -#} b {{instruction}}":                                                               "ab " + said,
		"a \n {{- instruction -}} \n b":                                                                    "a" + said + "b",
		"{{ instruction }}\r\n\r\n":                                                                        said + "\n",
		"{{ instruction|trim | upper() }}":                                                                 "DO\n\nIT \u2028NOW\r\nß",
		"{{ instruction . strip ( ) .lower() }}":                                                           "do\n\nit \u2028now\r\nß",
		"{{ instruction }}{{ instruction }}":                                                               said + said,
		"{% raw %}{{ x }}{% raw %}{% endraw %}{{instruction}}":                                             "{{ x }}{% raw %}" + said,
		"a {%- raw -%} {% x {%- endraw -%} b{{instruction}}":                                               "a{% xb" + said,
		"{% for l in instruction.splitlines() %}[{{ l.strip() }}]{% endfor %}":                             "[Do][][it][now][ß]",
		"{%- for l in instruction.splitlines() -%} <{{l}}> {%- endfor -%} .":                               "< Do><><it ><now><ß>.",
		"{% for instruction in instruction.splitlines() %}{{ instruction }};{% endfor %}{{ instruction }}": " Do;;it ;now;ß;" + said,
		"{% for a in instruction.splitlines() %}{% for b in a.splitlines() %}{{ a|lower }}{{ b }}{% endfor %}{% endfor %}": " do Doit it nownowßß",
		"{ {x} }} %} #} {{ instruction }}": "{ {x} }} %} #} " + said,
	} {
		if got, err := prompt.Render(template, said); got != want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", template, got, err, want)
		}
	}
	const hostile = "{{ other }} {% if %} {# \\ $1 %s"
	if got, err := prompt.Render("<{{ instruction }}>", hostile); got != "<"+hostile+">" || err != nil {
		t.Errorf("an instruction that looks like a template: got %q, %v", got, err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"":                                            "must include an 'instruction' variable",
		"{# {{ instruction }} #}":                     "must include an 'instruction' variable",
		"{{ instruction }}\n{{ a }}":                  "line 2 of the prompt template: there is no variable 'a'",
		"{#\n\n#}{% include 'x' %}":                   "line 3 of the prompt template: {% include 'x' %} is not supported: a template may have {{ instruction }}, {% for",
		"{{ instruction|indent(2) }}":                 "line 1 of the prompt template: the expression 'instruction|indent(2)' is not supported",
		"{{ instruction|safe }}":                      "'|safe' is not supported",
		"{{ instruction.format() }}":                  "'.format' is not supported",
		"{{ instruction.__class__ }}":                 "the expression",
		"{{ instruction[0] }}":                        "the expression",
		"{{ 'a' }}":                                   "the expression",
		"{{ }}":                                       "the expression",
		"{{+ instruction }}":                          "the expression",
		"{{ instruction.splitlines() }}":              "only a loop can take",
		"{{ instruction.splitlines()|trim}}":          "only a loop can take",
		"{{ instruction":                              "{{ is not closed by }}",
		"a\nb {% raw":                                 "line 2 of the prompt template: {% is not closed by %}",
		"{#":                                          "{# is not closed by #}",
		"{{ instruction }}{% raw %}":                  "line 1 of the prompt template: {% raw %} has no {% endraw %}",
		"{{ instruction }}\n{% endfor %}":             "line 2 of the prompt template: {% endfor %} is not supported",
		"{% for a in instruction %}":                  "only one over its lines: instruction.splitlines()",
		"\n{% for a in instruction.splitlines() %}\n": "line 2 of the prompt template: this loop has no {% endfor %}",
		"{% for a in instruction.splitlines() if a %}{% endfor %}":                          "the expression",
		"{% for a in instruction.splitlines() %}{% else %}{% endfor %}":                     "{% else %} is not supported",
		"{% for a in instruction.splitlines() %}{% endfor %}{{ a }}":                        "there is no variable 'a'",
		strings.Repeat("{% for a in instruction.splitlines() %}", 9):                        "too many loops",
		strings.Repeat("x", prompt.MaxTemplate+1):                                           "too large",
		"{% " + strings.Repeat("é%s", 1000) + " %}":                                         "is not supported",
		strings.Repeat("{% for instruction in instruction.splitlines() %}", 200) + "\n{{}}": "too many loops",
	} {
		got, err := prompt.Render(template, "x")
		if got != "" || exception.TypeOf(err) != exception.ValueError || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 || strings.Contains(err.Error(), "%!") {
			t.Errorf("%.60q: got %q, %v, want %q", template, got, err, want)
		}
	}
}

// TestBounds: no template makes more, or works longer, than is allowed.
func TestBounds(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat("x\n", 10_000)
	loops := func(n int, body string) string {
		return strings.Repeat("{% for a in instruction.splitlines() %}", n) + body + strings.Repeat("{% endfor %}", n)
	}
	for template, want := range map[string]string{
		loops(2, "{{ instruction }}"):                  "too large",
		loops(8, ""):                                   "does too much",
		loops(1, "{{ instruction|upper|lower|trim }}"): "too",
		strings.Repeat("{{instruction}}", 1000):        "too large",
		loops(8, "{{ a|trim }}"):                       "does too much",
	} {
		got, err := prompt.Render(template, lines)
		if got != "" || exception.TypeOf(err) != exception.ValueError || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %d bytes, %v, want %q", template, len(got), err, want)
		}
	}
	if got, err := prompt.Render(loops(1, "{{ a }}"), lines); len(got) != 10_000 || err != nil {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{"{{ instruction }}", "{% for a in instruction.splitlines() %}{{ a|upper }}{% endfor %}", "{#- -#}{% raw -%} {%- endraw %}", "{%-%}", "{{-}}", "{{--}}", "{#-#}"} {
		f.Add(s, "a\r\nb")
	}
	f.Fuzz(func(t *testing.T, template, instruction string) {
		out, err := prompt.Render(template, instruction)
		if err != nil && (exception.TypeOf(err) != exception.ValueError || out != "") || len(out) > prompt.MaxPrompt {
			t.Error(fmt.Sprintf("%q", out), err)
		}
	})
}
