package agent

import "github.com/proctor-run/proctor/internal/pyvalue"

// MCPServer is a tool server that the agent may use (section 8.2). Whoever runs
// trials only tells the agent of it, and starts none.
type MCPServer struct {
	Name string
	// Transport is "stdio", "sse" or "streamable-http". A stdio server has a
	// Command with Args, the others a URL.
	Transport string
	URL       string
	Command   string
	Args      []string
}

// AppendMCPConfig appends the JSON document that most command-line agents read:
// an object mcpServers of the servers by name, each with type ("stdio", "sse"
// or "http") and command and args, or url.
func AppendMCPConfig(dst []byte, servers []MCPServer) []byte {
	byName := pyvalue.NewObject(len(servers))
	for _, s := range servers {
		entry := pyvalue.NewObject(3)
		switch s.Transport {
		case "stdio":
			entry.Set("type", pyvalue.Str("stdio"))
			entry.Set("command", pyvalue.Str(s.Command))
			args := make(pyvalue.List, len(s.Args))
			for i, arg := range s.Args {
				args[i] = pyvalue.Str(arg)
			}
			entry.Set("args", args)
		default:
			kind := s.Transport
			if kind == "streamable-http" {
				kind = "http"
			}
			entry.Set("type", pyvalue.Str(kind))
			entry.Set("url", pyvalue.Str(s.URL))
		}
		byName.Set(s.Name, entry)
	}
	doc := pyvalue.NewObject(1)
	doc.Set("mcpServers", byName)
	return append(pyvalue.AppendPydantic(dst, doc, 2), '\n')
}
