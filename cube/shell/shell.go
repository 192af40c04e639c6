// Package shell is the tool with which agents work in a container: a command
// line, and reading and writing files through it.
//
// The texts that it returns are the format's, byte for byte: models are trained
// on them (CUBE, section 11).
package shell

import (
	"context"

	"github.com/proctor-run/proctor/cube"
)

// Register adds the tool configs.
func Register(r *cube.Registry) error { return r.Add(&BashToolConfig{}, &TerminalToolConfig{}) }

// BashToolConfig makes a tool. Make one with [NewBashToolConfig]: a literal
// has no working directory.
type BashToolConfig struct {
	WorkingDir     string           `json:"working_dir" default:"/app"`
	MaxOutputBytes int              `json:"max_output_bytes" default:"100000"`
	ExtraEnv       cube.Map[string] `json:"extra_env" default:"{}"`
	// OutputFormat is "plain" or "returncode_envelope".
	OutputFormat string `json:"output_format" default:"plain" enum:"plain,returncode_envelope"`
	// EnableFileActions lists read_file and write_file. They can be executed
	// even when they are not listed.
	EnableFileActions bool `json:"enable_file_actions" default:"false"`
}

// TypeName is the name of the type in documents.
func (*BashToolConfig) TypeName() string { return "cube.tools.bash.BashToolConfig" }

// NewBashToolConfig returns the defaults.
func NewBashToolConfig() *BashToolConfig {
	c := cube.Default[BashToolConfig]()
	return &c
}

// Validate refuses an output format that there is not.
func (c *BashToolConfig) Validate() error {
	switch c.OutputFormat {
	case "", "plain", "returncode_envelope":
		return nil
	}
	return cube.ValueErrorf("output_format: Input should be 'plain' or 'returncode_envelope'")
}

// Make builds the tool; it needs a container.
func (c *BashToolConfig) Make(_ context.Context, container cube.Container) (cube.Tool, error) {
	if container == nil {
		return nil, cube.ValueErrorf("BashTool requires a container")
	}
	return newTool("BashTool", *c, container)
}

// TerminalToolConfig is [BashToolConfig] with a cap on the time a command may
// take. Line arguments of read_file may be text such as "10-20".
type TerminalToolConfig struct {
	BashToolConfig
	// MaxTimeout caps the timeout of a command, in seconds; a command without
	// one gets it too.
	MaxTimeout *int `json:"max_timeout"`
}

// Validate refuses an output format that there is not, and a cap that caps
// nothing.
func (c *TerminalToolConfig) Validate() error {
	if c.MaxTimeout != nil && *c.MaxTimeout <= 0 {
		return cube.ValueErrorf("max_timeout: Input should be greater than 0")
	}
	return c.BashToolConfig.Validate()
}

// TypeName is the name of the type in documents.
func (*TerminalToolConfig) TypeName() string { return "cube.tools.terminal.TerminalToolConfig" }

// NewTerminalToolConfig returns the defaults.
func NewTerminalToolConfig() *TerminalToolConfig {
	c := cube.Default[TerminalToolConfig]()
	return &c
}

// Make builds the tool; it needs a container.
func (c *TerminalToolConfig) Make(_ context.Context, container cube.Container) (cube.Tool, error) {
	if container == nil {
		return nil, cube.ValueErrorf("ContainerTerminalTool requires a container")
	}
	return newTerminalTool("ContainerTerminalTool", *c, container)
}
