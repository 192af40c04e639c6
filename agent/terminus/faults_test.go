package terminus

import (
	"errors"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// TestFaults: whichever command of the sandbox fails, is refused or says nothing but
// garbage, the agent ends with that error or goes on, and leaves a valid trajectory.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault fake.Handler
		check func(t *testing.T, at int, err error)
	}{
		"fails": {fake.Fail(nil), func(t *testing.T, at int, err error) {
			t.Helper()
			// A summary that fails is a reason to go on without it.
			if !errors.Is(err, fake.ErrInjected) && (err != nil || at != 6) {
				t.Errorf("command %d: %v", at, err)
			}
		}},
		"refused": {fake.Refuse("no such user"), func(t *testing.T, at int, err error) {
			t.Helper()
			if (exception.TypeOf(err) != exception.RuntimeError || !strings.Contains(err.Error(), "needs bash in the image: no such user")) && (err != nil || at != 6) {
				t.Errorf("command %d: %v", at, err)
			}
		}},
		"garbage": {fake.Garbage(100_000, 1), func(t *testing.T, at int, err error) {
			t.Helper()
			if err != nil && (at != 1 || !strings.Contains(err.Error(), "needs tmux")) {
				t.Errorf("command %d: %v", at, err)
			}
		}},
		"silent": {fake.Exit(0), func(t *testing.T, at int, err error) {
			t.Helper()
			if err != nil && at > 2 {
				t.Errorf("command %d: %v", at, err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := 1; at <= 8; at++ {
				b := newBench(t, append(tooLongAtFourth()[2:], says(doneJSON)...))
				b.terminal.fault, b.terminal.faultAt = c.fault, at
				err := b.agent.Setup(t.Context(), b.env)
				if err == nil {
					_, err = b.again(t.Context())
				}
				c.check(t, at, err)
			}
		})
	}
}

// TestJunkOfTheOtherForm: the prompt names the form that is wanted.
func TestJunkOfTheOtherForm(t *testing.T) {
	t.Parallel()
	b := newBench(t, says(lsJSON), "parser_name", "xml", "max_turns", "1")
	b.must()
	if got := observed(t, b.steps()[1]); !strings.HasSuffix(got, "provide a proper response.") {
		t.Errorf("it observed %q", got)
	}
	if got := b.steps()[0].Message.Text; !strings.Contains(got, "<keystrokes duration=") || strings.Contains(got, `"keystrokes"`) {
		t.Errorf("the first prompt is %q", got)
	}
}

// TestLongJunk: of a long answer that is no JSON the model is shown the beginning.
func TestLongJunk(t *testing.T) {
	t.Parallel()
	long := "{" + strings.Repeat("x", 300) + "}"
	if got := (jsonParser{}).parse(long).failure.text; !strings.HasPrefix(got, "Invalid JSON: ") || !strings.HasSuffix(got, " | Content preview: "+long[:100]+"...") {
		t.Errorf("got %q", got)
	}
}

// TestWithoutLimit: a pane's file has no bound where output files have none.
func TestWithoutLimit(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int64]string{0: "cat > /logs/agent/terminus_2.pane", 1 << 20: "ulimit -f 2049; exec cat > /logs/agent/terminus_2.pane"} {
		s := session{env: agent.Env{OutputLimit: limit}}
		if got := s.pipe(); got != want {
			t.Errorf("%d: %s", limit, got)
		}
	}
}

// TestManyWarnings: what a model is told of its answer is bounded.
func TestManyWarnings(t *testing.T) {
	t.Parallel()
	text := "<response><analysis>a</analysis><plan>p</plan><commands>" + strings.Repeat("<keystrokes/>", 10_000) + "</commands></response>"
	a := xmlParser{}.parse(text)
	if got := a.feedback(); len(a.commands) != 10_000 || len(got) > maxScreen+100 || !strings.HasPrefix(got, "WARNINGS: - ") {
		t.Errorf("%d commands, feedback of %d bytes", len(a.commands), len(got))
	}
}
