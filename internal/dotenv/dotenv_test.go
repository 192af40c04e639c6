package dotenv

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func noHost(string) (string, bool) { return "", false }

func TestParse(t *testing.T) {
	t.Parallel()
	host := func(name string) (string, bool) { return "host", name == "HOST" || name == "A" }
	tests := map[string]struct {
		text     string
		want     []Variable
		warnings []string
	}{
		"nothing":          {"", nil, nil},
		"comments":         {"# one\n\n  # two\r\n", nil, nil},
		"plain":            {"A=1\nB = two words \r\nC=", []Variable{{"A", "1"}, {"B", "two words"}, {"C", ""}}, nil},
		"export":           {"export A=1\n  export  B=2", []Variable{{"A", "1"}, {"B", "2"}}, nil},
		"comment behind":   {"A=1 # one\nB=1#2\nC='1' # one\nD=#", []Variable{{"A", "1"}, {"B", "1#2"}, {"C", "1"}, {"D", "#"}}, nil},
		"quoted name":      {"'a b'=1", []Variable{{"a b", "1"}}, nil},
		"single quotes":    {`A='it\'s \n \\'`, []Variable{{"A", `it's \n \`}}, nil},
		"double quotes":    {`A="a \"b\" \n \x \\"`, []Variable{{"A", "a \"b\" \n \\x \\"}}, nil},
		"several lines":    {"A=\"one\ntwo\"\nB=1", []Variable{{"A", "one\ntwo"}, {"B", "1"}}, nil},
		"bare name":        {"HOST\nB=1", []Variable{{"B", "1"}}, nil},
		"password":         {"A=pa$word$$1", []Variable{{"A", "pa$word$$1"}}, nil},
		"of the host":      {"B=${HOST}/${NONE}/${NONE:-d}/${HOST:-d}", []Variable{{"B", "host//d/host"}}, nil},
		"of the file":      {"B=${A}\nA=file\nC=${A}", []Variable{{"B", "host"}, {"A", "file"}, {"C", "file"}}, nil},
		"in single quotes": {"B='${HOST}'", []Variable{{"B", "host"}}, nil},
		"twice":            {"A=1\nA=${A}2", []Variable{{"A", "12"}}, nil},
		"taken back":       {"A=1\nA\nB=${A}", []Variable{{"B", ""}}, nil},
		"no references":    {"A=${\nB=$HOST\nC=${HOST", []Variable{{"A", "${"}, {"B", "$HOST"}, {"C", "${HOST"}}, nil},
		"unreadable": {
			"A='open\n=1\nB='x' y\nC=1",
			[]Variable{{"C", "1"}},
			[]string{"line 1 cannot be read and is skipped"},
		},
		"unreadable lines": {
			"=1\nA=\"open\nB=1 '\n",
			[]Variable{{"B", "1 '"}},
			[]string{"line 1 cannot be read and is skipped", "line 2 cannot be read and is skipped"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, warnings := Parse(tt.text, host)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%q: variables (-want +got):\n%s", tt.text, diff)
			}
			if diff := cmp.Diff(tt.warnings, warnings); diff != "" {
				t.Errorf("%q: warnings (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"A=1", "export 'a b' = \"x\\n${A:-1}\" # c\r\nB", "A='\n=\n", "\u00a0A=\u20281"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		vars, _ := Parse(text, noHost)
		for _, v := range vars {
			if v.Name == "" {
				t.Errorf("%q: a variable without name", text)
			}
		}
		// What comes before a file does not change what is in it.
		after, _ := Parse("# comment\n\n"+text, noHost)
		if diff := cmp.Diff(vars, after); diff != "" {
			t.Errorf("%q behind a comment (-want +got):\n%s", text, diff)
		}
		if n := strings.Count(text, "="); len(vars) > n {
			t.Errorf("%q: %d variables of %d assignments", text, len(vars), n)
		}
	})
}
