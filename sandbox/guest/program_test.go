package guest_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/sandbox/guest"
)

func TestProgramRefusesUnknownArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"serve"}, {guest.RelayMode, "more"}, {guest.RelayMode, "0"}, {guest.RelayMode, "65536"}, {guest.RelayMode, "80", "81"}} {
		var said bytes.Buffer
		if code := guest.Program(args, nil, nil, &said, "test"); code != 2 || !strings.Contains(said.String(), "unknown arguments") {
			t.Errorf("%q: code %d, %q", args, code, said.String())
		}
	}
}
