package job

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/vectors"
)

func TestMCPConfigVectors(t *testing.T) {
	t.Parallel()
	type server struct {
		Name      string   `json:"name"`
		Transport string   `json:"transport"`
		URL       *string  `json:"url"`
		Command   *string  `json:"command"`
		Args      []string `json:"args"`
	}
	var cases []struct {
		Name, Suffix, Text string
		Servers            []server
		ErrorContains      string `json:"error_contains"`
	}
	if err := json.Unmarshal(vectors.File(t, "skills/mcp-config.json"), &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			got, err := parseMCPServers([]byte(c.Text), c.Suffix)
			if c.ErrorContains != "" {
				if err == nil || !strings.Contains(err.Error(), c.ErrorContains) {
					t.Fatalf("error %v, want one with %q", err, c.ErrorContains)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var want []harbor.MCPServer
			for _, s := range c.Servers {
				want = append(want, harbor.MCPServer{Name: s.Name, Transport: s.Transport, URL: s.URL, Command: s.Command, Args: s.Args})
			}
			if len(got) == 0 && len(want) == 0 {
				return
			}
			for i := range got {
				if got[i].Args == nil {
					got[i].Args = []string{}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("servers (-want +got):\n%s", diff)
			}
		})
	}
	t.Logf("%d cases", len(cases))
}
