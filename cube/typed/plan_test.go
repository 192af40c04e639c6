package typed_test

import (
	"strings"
	"testing"

	"github.com/proctor-run/proctor/cube/typed"
)

type unfit struct {
	First  chan int   `json:"first"`
	Second func()     `json:"second"`
	Third  complex128 `json:"third"`
}

func (*unfit) TypeName() string { return "test.Unfit" }

// TestAllFieldsAreReported: a type with several mistakes is mended in one go.
func TestAllFieldsAreReported(t *testing.T) {
	t.Parallel()
	err := typed.NewRegistry(nil).Add(&unfit{})
	if err == nil {
		t.Fatal("a channel is a field")
	}
	for _, name := range []string{"First", "Second", "Third"} {
		if !strings.Contains(err.Error(), "field "+name+" of ") {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
}
