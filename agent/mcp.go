package agent

import "github.com/proctor-run/proctor/value"

// MCPServer is a tool server that the agent may use (section 8.2). Whoever runs
// trials only tells the agent of it, and starts none.
type MCPServer struct {
	Name string
	// Transport is "stdio", "sse" or "streamable-http". A stdio server has a
	// command with Args, the others a URL.
	Transport string
	URL       string
	Command   string
	Args      []string
	// Required says that without this server there is nothing that the agent could do: one
	// that finds that it cannot use it fails.
	Required bool
}

// AppendMCPConfig appends the JSON document that most command-line agents read:
// an object mcpServers of the servers by name, each with type ("stdio", "sse"
// or "http") and command and args, or url.
func AppendMCPConfig(dst []byte, servers []MCPServer) []byte {
	byName := value.NewObject(len(servers))
	for _, s := range servers {
		entry := value.NewObject(3)
		switch s.Transport {
		case "stdio":
			entry.Set("type", value.Str("stdio"))
			entry.Set("command", value.Str(s.Command))
			args := make(value.List, len(s.Args))
			for i, arg := range s.Args {
				args[i] = value.Str(arg)
			}
			entry.Set("args", args)
		default:
			kind := s.Transport
			if kind == "streamable-http" {
				kind = "http"
			}
			entry.Set("type", value.Str(kind))
			entry.Set("url", value.Str(s.URL))
		}
		byName.Set(s.Name, entry)
	}
	doc := value.NewObject(1)
	doc.Set("mcpServers", byName)
	return append(value.AppendPydantic(dst, doc, 2), '\n')
}
