package installed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/value"
)

// mcpForms are how programs want to be told of MCP servers, by the name of one that does
// (Harbor agent format, section 8.2).
var mcpForms = map[string]func(agent.MCPServer) *value.Object{
	// {"type":"stdio","command","args"} or {"type":"sse"|"http","url"}
	"claude": func(s agent.MCPServer) *value.Object {
		if s.Transport == stdio {
			return object("type", value.Str(stdio), "command", value.Str(s.Command), "args", texts(s.Args))
		}
		kind := s.Transport
		if kind == streamable {
			kind = "http"
		}
		return object("type", value.Str(kind), "url", value.Str(s.URL))
	},
	// {"command","args"}, {"url"} for SSE or {"httpUrl"}
	"gemini": geminiServer,
	// as gemini, with the tools shown as they are, without a search for them
	"qwen": func(s agent.MCPServer) *value.Object {
		o := geminiServer(s)
		o.Set("alwaysLoadTools", value.Bool(true))
		return o
	},
	// {"type":"local","command":[…]} or {"type":"remote","url"}
	"opencode": func(s agent.MCPServer) *value.Object {
		if s.Transport == stdio {
			return object("type", value.Str("local"), "command", texts(append([]string{s.Command}, s.Args...)))
		}
		return object("type", value.Str("remote"), "url", value.Str(s.URL))
	},
	// as plain, with {"url","transport"}
	"openclaw": func(s agent.MCPServer) *value.Object {
		if s.Transport == stdio {
			return object("command", value.Str(s.Command), "args", texts(s.Args))
		}
		return object("url", value.Str(s.URL), "transport", value.Str(s.Transport))
	},
	// {"command","args"} or {"url"}
	"plain": func(s agent.MCPServer) *value.Object {
		if s.Transport == stdio {
			return object("command", value.Str(s.Command), "args", texts(s.Args))
		}
		return object("url", value.Str(s.URL))
	},
}

func geminiServer(s agent.MCPServer) *value.Object {
	switch s.Transport {
	case stdio:
		return object("command", value.Str(s.Command), "args", texts(s.Args))
	case streamable:
		return object("httpUrl", value.Str(s.URL))
	}
	return object("url", value.Str(s.URL))
}

const (
	stdio      = "stdio"
	streamable = "streamable-http"
)

// namesServers reports whether the program is told of MCP servers: a template names them.
func (d *Definition) namesServers() bool {
	return slices.ContainsFunc(d.templates(), func(t [2]string) bool {
		return strings.Contains(t[1], ".MCP") || strings.Contains(t[1], `mcp "`)
	})
}

// mcpServers is a JSON object of the servers by name in one of the forms.
func mcpServers(form string, servers []agent.MCPServer) (string, error) {
	entry, ok := mcpForms[form]
	if !ok {
		known := make([]string, 0, len(mcpForms))
		for name := range mcpForms {
			known = append(known, name)
		}
		slices.Sort(known)
		return "", fmt.Errorf("there is no form %q of MCP servers, only %s", form, strings.Join(known, ", "))
	}
	all := value.NewObject(len(servers))
	for _, s := range servers {
		all.Set(s.Name, entry(s))
	}
	return string(value.AppendDumps(nil, all, value.DumpsOptions{})), nil
}

// object is an object of keys and values in turn.
func object(pairs ...any) *value.Object {
	o := value.NewObject(len(pairs) / 2)
	for i := 0; i+1 < len(pairs); i += 2 {
		key, _ := pairs[i].(string)
		v, _ := pairs[i+1].(value.Value)
		o.Set(key, v)
	}
	return o
}

func texts(all []string) value.List {
	list := make(value.List, len(all))
	for i, s := range all {
		list[i] = value.Str(s)
	}
	return list
}
