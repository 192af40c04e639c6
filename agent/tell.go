package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/proctor-run/proctor/sandbox"
)

// Files that agents' commands find in the sandbox.
const (
	// TaskDir is the directory of these files.
	TaskDir         = "/proctor"
	instructionFile = TaskDir + "/instruction.md"
	deadlineFile    = TaskDir + "/deadline"
	mcpFile         = TaskDir + "/mcp.json"

	// A single environment variable may hold 128 KiB on Linux, its name and
	// the terminating zero included.
	instructionInEnvLimit = 96 << 10
)

// UploadText writes a file that everybody in the sandbox can read.
func (e Env) UploadText(ctx context.Context, path, text string) error {
	if err := sandbox.UploadBytes(ctx, e.Sandbox, []byte(text), path, 0o644); err != nil {
		return fmt.Errorf("uploading %q: %w", path, err)
	}
	return nil
}

// UploadServers puts the list of MCP servers in place, if there are any.
func (e Env) UploadServers(ctx context.Context) error {
	if len(e.MCPServers) == 0 {
		return nil
	}
	return e.UploadText(ctx, mcpFile, string(AppendMCPConfig(nil, e.MCPServers)))
}

// Equipped are the variables of the agent's commands, of which own are its own, with those
// that tell of MCP servers and skills: PROCTOR_MCP_CONFIG is the path of a list of servers
// ([AppendMCPConfig]), PROCTOR_SKILLS_DIR a directory with a directory for each skill. Each
// is unset where there are none.
func (e Env) Equipped(own []string) []string {
	vars := e.Variables(own)
	if len(e.MCPServers) > 0 {
		vars = append(vars, "PROCTOR_MCP_CONFIG="+mcpFile)
	}
	if e.SkillsDir != "" {
		vars = append(vars, "PROCTOR_SKILLS_DIR="+e.SkillsDir)
	}
	return vars
}

// UploadInstruction puts the instruction in place and returns the file's path.
func (e Env) UploadInstruction(ctx context.Context, task Task) (path string, err error) {
	return instructionFile, e.UploadText(ctx, instructionFile, task.Instruction)
}

// Tell puts the task in place for a command, and returns the variables that tell of it:
//
//	PROCTOR_INSTRUCTION       the instruction; unset when longer than 96 KiB
//	PROCTOR_INSTRUCTION_FILE  a file with it
//	PROCTOR_DEADLINE          when the run is ended, in RFC 3339; empty for never
//	PROCTOR_DEADLINE_FILE     a file with it
//	PROCTOR_MODEL             the model name as configured; empty for none
func (e Env) Tell(ctx context.Context, task Task, model string) ([]string, error) {
	deadline := ""
	if !task.Deadline.IsZero() {
		deadline = task.Deadline.UTC().Format(time.RFC3339)
	}
	if _, err := e.UploadInstruction(ctx, task); err != nil {
		return nil, err
	}
	if err := e.UploadText(ctx, deadlineFile, deadline); err != nil {
		return nil, err
	}
	vars := []string{
		"PROCTOR_INSTRUCTION_FILE=" + instructionFile,
		"PROCTOR_DEADLINE=" + deadline,
		"PROCTOR_DEADLINE_FILE=" + deadlineFile,
		"PROCTOR_MODEL=" + model,
	}
	if len(task.Instruction) <= instructionInEnvLimit && !strings.ContainsRune(task.Instruction, 0) {
		vars = append(vars, "PROCTOR_INSTRUCTION="+task.Instruction)
	}
	return vars, nil
}
