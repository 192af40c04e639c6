package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
)

// The members of a request that decide what the provider does besides answering.
const (
	backgroundMember = "background"
	toolsMember      = "tools"
)

// reachingMembers are members by which a provider reaches the network, whatever is in them.
func reachingMembers() []string {
	return []string{"web_search_options", "plugins", "mcp_servers", "container"}
}

// allowed refuses what could not be counted and, for a caller who does not have the whole
// network, what would be a way to it.
func (c *call) allowed() error {
	if !c.op.answers {
		return nil
	}
	found, err := wire.MembersOf(c.asked, append(reachingMembers(), backgroundMember, toolsMember)...)
	if err != nil {
		return err //nolint:wrapcheck // it is for the caller
	}
	if set(found[backgroundMember]) && string(found[backgroundMember]) != "false" {
		return errors.New(`an answer in the background cannot be counted: ask for it without "background"`)
	}
	if !c.g.Offline {
		return nil
	}
	for _, name := range reachingMembers() {
		if set(found[name]) {
			return offline(name)
		}
	}
	var tools []json.RawMessage
	if set(found[toolsMember]) && json.Unmarshal(found[toolsMember], &tools) != nil {
		return errors.New("the member tools of the body is no list")
	}
	for _, tool := range tools {
		if name := reaching(c.op.api, tool); name != "" {
			return offline(name)
		}
	}
	return nil
}

// set: the member is there and not null.
func set(member json.RawMessage) bool { return len(member) > 0 && string(member) != "null" }

func offline(what string) error {
	return fmt.Errorf("this task does not have the whole network, which %q would be a way to", shown(what))
}

// reaching says what a tool is that the provider itself would use; empty for one that its
// caller uses.
func reaching(api llm.API, tool json.RawMessage) string {
	if api == llm.Gemini {
		return reachingGemini(tool)
	}
	found, err := wire.MembersOf(tool, "type")
	if err != nil {
		return err.Error()
	}
	var kind string
	if raw := found["type"]; set(raw) && json.Unmarshal(raw, &kind) != nil {
		return "a tool whose type is no text"
	}
	switch kind {
	case "", "function", "custom":
		return ""
	}
	callers := []string{"local_shell", "apply_patch", "computer_use"}
	if api == llm.Anthropic {
		callers = []string{"bash_", "text_editor_", "computer_", "memory_"}
	}
	for _, prefix := range callers {
		if strings.HasPrefix(kind, prefix) {
			return ""
		}
	}
	return kind
}

// reachingGemini: of the members of a tool, only functions are the caller's.
func reachingGemini(tool json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(tool, &members) != nil {
		return "a tool that is no object"
	}
	for name := range members {
		if name != "functionDeclarations" && name != "function_declarations" {
			return name
		}
	}
	return ""
}
