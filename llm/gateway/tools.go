package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
)

// The members of a request that decide what the provider does besides answering.
const (
	backgroundMember = "background"
	toolsMember      = "tools"
	tierMember       = "service_tier"
	speedMember      = "speed"
	nestedMember     = "generateContentRequest" // of Gemini's countTokens
	nestedSnake      = "generate_content_request"
)

// reachingMembers are members by which a provider reaches the network, whatever is in them.
func reachingMembers() []string {
	return []string{
		"web_search_options", "plugins", "mcp_servers", "container", "search_parameters", "search_settings",
		"enable_search", "search_options", "connectors", "data_sources", "dataSources",
		"prompt", "cachedContent", "cached_content", // they are kept at the provider, with tools that are not seen here
	}
}

// elsewhereMembers are members by which servers that stand before others, as routers do, are
// told to ask another model, or with another key.
func elsewhereMembers() []string {
	return []string{
		"models", "fallbacks", "context_window_fallbacks", "content_policy_fallbacks", "preset", "providerOptions",
		"model_list", "user_config", "api_base", "base_url", "api_key", "extra_body", "extra_headers",
	}
}

// allowed refuses what could not be counted and, for a caller who does not have the whole
// network, what would be a way to it.
func (c *call) allowed(asked *wire.Request) error {
	names := slices.Concat(reachingMembers(), elsewhereMembers(),
		[]string{backgroundMember, toolsMember, tierMember, speedMember, nestedMember, nestedSnake})
	found, err := asked.Members(names...)
	if err != nil {
		return err //nolint:wrapcheck // it is for the caller
	}
	if err := c.allowedMembers(found); err != nil {
		return err
	}
	for _, name := range []string{nestedMember, nestedSnake} {
		if c.op.api == llm.Gemini && set(found[name]) {
			if err := c.allowedNested(found[name], append(names, "model")); err != nil {
				return err
			}
		}
	}
	if !c.g.Offline {
		return nil
	}
	if name := fetched(c.op.api, asked); name != "" {
		return offline(name)
	}
	return nil
}

// allowedNested is allowed for a request within another.
func (c *call) allowedNested(request json.RawMessage, names []string) error {
	found, err := wire.MembersOf(request, names...)
	if err != nil {
		return err //nolint:wrapcheck // it is for the caller
	}
	var name string
	if raw := found["model"]; set(raw) {
		_, model, _ := strings.Cut(c.g.Model, "/")
		if json.Unmarshal(raw, &name) != nil || !c.names(name, model) {
			return c.unknown(string(raw), model)
		}
	}
	return c.allowedMembers(found)
}

func (c *call) allowedMembers(found map[string]json.RawMessage) error {
	if on(found[backgroundMember]) {
		return errors.New(`an answer in the background cannot be counted: ask for it without "background"`)
	}
	for _, name := range elsewhereMembers() {
		if set(found[name]) {
			return fmt.Errorf("this gateway serves one model alone, beside which %q could have others asked: leave it away", name)
		}
	}
	if err := c.allowedPrice(found); err != nil {
		return err
	}
	if c.g.Offline {
		for _, name := range reachingMembers() {
			if on(found[name]) {
				return offline(name)
			}
		}
	}
	return c.allowedTools(found[toolsMember])
}

// allowedPrice refuses, where there is a budget, what costs more than the prices that are known.
func (c *call) allowedPrice(found map[string]json.RawMessage) error {
	if !c.g.Meter.Bounded() {
		return nil
	}
	for member, plain := range map[string][]string{
		tierMember: {`"auto"`, `"default"`, `"standard"`, `"standard_only"`, `"flex"`}, speedMember: {`"standard"`},
	} {
		if raw := found[member]; set(raw) && !slices.Contains(plain, string(raw)) {
			return fmt.Errorf("there is a budget, which does not know what %q costs more: leave it away", member)
		}
	}
	return nil
}

func (c *call) allowedTools(tools json.RawMessage) error {
	if !set(tools) {
		return nil
	}
	if tools[0] != '[' {
		return errors.New("the member tools of the body is not a list")
	}
	for tool := range wire.Elements(tools) {
		kind, err := kindOf(tool)
		if err == nil && kind == namespaceKind && c.op.api == llm.Responses {
			err = c.allowedNamespace(tool)
		} else if err == nil {
			err = c.allowedTool(tool, kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// namespaceKind is the type of a tool that is several under one name, as those of a server of
// tools are.
const namespaceKind = "namespace"

// allowedNamespace refuses what holds a tool that is refused by itself.
func (c *call) allowedNamespace(namespace json.RawMessage) error {
	found, err := wire.MembersOf(namespace, toolsMember)
	if err != nil {
		return fmt.Errorf("a namespace of tools: %w", err)
	}
	inside := found[toolsMember]
	if !set(inside) || inside[0] != '[' {
		return errors.New("a namespace of tools has no list of them")
	}
	for tool := range wire.Elements(inside) {
		kind, err := kindOf(tool)
		if err == nil && kind == namespaceKind {
			err = errors.New("a namespace of tools has another one in it")
		}
		if err == nil {
			err = c.allowedTool(tool, kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// allowedTool refuses a tool by which a provider would reach the network for a caller who may
// not.
func (c *call) allowedTool(tool json.RawMessage, kind string) error {
	if !c.g.Offline {
		return nil
	}
	if c.op.api == llm.Gemini {
		kind = reachingGemini(tool)
	} else if calledByCaller(c.op.api, kind) {
		kind = ""
	}
	if kind != "" {
		return offline(kind)
	}
	return nil
}

// set: the member is there and not null.
func set(member json.RawMessage) bool { return len(member) > 0 && string(member) != "null" }

// on: the member is there and neither null nor false.
func on(member json.RawMessage) bool { return set(member) && string(member) != "false" }

func offline(what string) error {
	return fmt.Errorf("this task does not have the whole network, which %q would be a way to", shown(what))
}

// kindOf is the type of a tool; empty where it has none. One that asks a model of its own is
// refused.
func kindOf(tool json.RawMessage) (string, error) {
	if !set(tool) {
		return "", nil
	}
	found, err := wire.MembersOf(tool, "type", "model")
	if err != nil {
		return "", fmt.Errorf("a tool of the body: %w", err)
	}
	var kind string
	if raw := found["type"]; set(raw) && json.Unmarshal(raw, &kind) != nil {
		return "", errors.New("a tool of the body has a type that is not text")
	}
	if set(found["model"]) {
		return "", fmt.Errorf("this gateway serves one model alone, and the tool %q asks one of its own", shown(kind))
	}
	return kind, nil
}

// calledByCaller tells of the type of a tool that its caller uses it, and not the provider.
func calledByCaller(api llm.API, kind string) bool {
	switch kind {
	case "", "function", "custom":
		return true
	}
	callers := []string{"local_shell", "apply_patch", "computer_use"}
	if api == llm.Anthropic {
		callers = []string{"bash_", "text_editor_", "computer_", "memory_"}
	}
	return slices.ContainsFunc(callers, func(prefix string) bool { return strings.HasPrefix(kind, prefix) })
}

// reachingGemini says what the provider itself would use; empty for nothing. Of the members of
// a tool, only functions are the caller's.
func reachingGemini(tool json.RawMessage) string {
	for name := range wire.Names(tool) {
		if name != "functionDeclarations" && name != "function_declarations" {
			return name
		}
	}
	return ""
}
