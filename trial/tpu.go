package trial

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/proctor-run/proctor/internal/pyvalue"
	"github.com/proctor-run/proctor/internal/schema"
)

var topologyPattern = regexp.MustCompile(`^[1-9][0-9]*(x[1-9][0-9]*)+$`)

// DecodeTPU validates a request for accelerator chips.
func DecodeTPU(c *schema.Cursor, v pyvalue.Value) (TPU, bool) {
	return schema.Model("TpuSpec", func(f *schema.Fields) TPU {
		return TPU{
			Type:     schema.Required(f, "type", schema.NonEmpty),
			Topology: schema.Required(f, "topology", schema.After(schema.Str, checkTopology)),
		}
	})(c, v)
}

func checkTopology(s string) (string, error) {
	trimmed := strings.TrimSpace(s)
	if !topologyPattern.MatchString(trimmed) {
		return s, fmt.Errorf("Invalid TPU topology %s: expected dimensions separated by 'x' with each dimension a positive integer (e.g., '2x4', '2x2x1', '4x4').", //nolint:staticcheck // the format's words
			pyvalue.Repr(pyvalue.Str(s)))
	}
	return trimmed, nil
}
