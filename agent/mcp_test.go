package agent_test

import (
	"fmt"

	"github.com/proctor-run/proctor/agent"
)

func ExampleAppendMCPConfig() {
	fmt.Print(string(agent.AppendMCPConfig(nil, []agent.MCPServer{
		{Name: "files", Transport: "stdio", Command: "npx", Args: []string{"-y", "files"}},
		{Name: "search", Transport: "streamable-http", URL: "http://search:8000/mcp"},
	})))
	// Output:
	// {
	//   "mcpServers": {
	//     "files": {
	//       "type": "stdio",
	//       "command": "npx",
	//       "args": [
	//         "-y",
	//         "files"
	//       ]
	//     },
	//     "search": {
	//       "type": "http",
	//       "url": "http://search:8000/mcp"
	//     }
	//   }
	// }
}
