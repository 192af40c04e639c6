// Package installed has the agents that are programs of their own and are known by
// name. What they log can be read as trajectories.
package installed

import (
	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/logs"
)

// Agents returns the registry of them. The list is the caller's.
func Agents() agent.Registry {
	return agent.Registry{
		{Name: "claude-code", Logs: logs.ClaudeCode},
		{Name: "cline-cli", Logs: logs.ClineCLI},
		{Name: "codex", Logs: logs.Codex},
		{Name: "continue", Logs: logs.Continue},
		{Name: "copilot-cli", Logs: logs.CopilotCLI},
		{Name: "gemini-cli", Logs: logs.GeminiCLI},
		{Name: "goose", Logs: logs.Goose},
		{Name: "kilo", Logs: logs.Kilo},
		{Name: "mini-swe-agent", Logs: logs.MiniSWEAgent},
		{Name: "opencode", Logs: logs.OpenCode},
		{Name: "openhands", Logs: logs.OpenHands},
		{Name: "pi", Logs: logs.Pi},
		{Name: "qwen-coder", Logs: logs.QwenCoder},
	}
}
