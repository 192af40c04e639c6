package harbor_test

import (
	"fmt"

	"github.com/proctor-run/proctor/harbor"
)

func ExampleParseConfig() {
	cfg, report, err := harbor.ParseConfig([]byte(`
version = "1.0"

[task]
name = "acme/hello"

[environment]
memory = "2G"
colour = "blue"
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cfg.Task.Name, cfg.Environment.MemoryMB, "MB")
	for _, w := range report.Warnings {
		fmt.Printf("%s: %s\n", w.Loc, w.Text)
	}
	for _, loc := range report.Unknown {
		fmt.Println("unknown key", loc)
	}
	// Output:
	// acme/hello 2048 MB
	// environment: The 'memory' field is deprecated. Use 'memory_mb' instead.
	// unknown key environment.colour
}

func ExampleResolveTemplate() {
	host := func(name string) (string, bool) { return "s3cret", name == "API_KEY" }
	for _, value := range []string{"${API_KEY}", "${REGION:-eu}", "plain ${API_KEY}", "${REGION}"} {
		fmt.Println(harbor.ResolveTemplate(value, host))
	}
	// Output:
	// s3cret <nil>
	// eu <nil>
	// plain ${API_KEY} <nil>
	//  Environment variable 'REGION' not found in host environment
}

func ExampleConfig_TOML() {
	cfg := harbor.DefaultConfig()
	cfg.Agent.TimeoutSec = new(120.0)
	fmt.Print(string(cfg.TOML()))
	// Output:
	// schema_version = "1.3"
	// artifacts = []
	//
	// [metadata]
	//
	// [verifier]
	// timeout_sec = 600.0
	//
	// [verifier.env]
	//
	// [agent]
	// timeout_sec = 120.0
	//
	// [environment]
	// network_mode = "public"
	// build_timeout_sec = 600.0
	// os = "linux"
	// mcp_servers = []
	//
	// [environment.env]
	//
	// [solution.env]
}
