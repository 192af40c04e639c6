package pooling

import (
	"strings"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	b := fake.New(fake.Config{Dir: t.TempDir(), Prepares: true})
	report, err := Compare(t.Context(), b, sandbox.Spec{Name: "measured"}, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := report.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"create", "made when asked for", "kept ready"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the report says nothing of %q:\n%s", want, table.String())
		}
	}
	fake.Verify(t, b) // nothing is left
}
