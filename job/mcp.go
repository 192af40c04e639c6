package job

import (
	"fmt"
	"path/filepath"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/toml"
	"github.com/proctor-run/proctor/internal/yaml11"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// maxMCPConfig bounds a file of MCP servers, in bytes: people write them.
const maxMCPConfig = 16 << 20

// ReadMCPServers reads the MCP servers of a configuration file: .json, .yaml,
// .yml or .toml, in the layout of this format or of common desktop clients
// (Harbor agent format, section 8.2).
func ReadMCPServers(path string) ([]harbor.MCPServer, error) {
	data, err := bounded.ReadFile(path, maxMCPConfig)
	if err != nil {
		return nil, fmt.Errorf("reading MCP servers: %w", err)
	}
	servers, err := parseMCPServers(data, filepath.Ext(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return servers, nil
}

func parseMCPServers(data []byte, suffix string) ([]harbor.MCPServer, error) {
	doc, err := decodeMCPDocument(data, suffix)
	if err != nil {
		return nil, err
	}
	root, ok := doc.(*value.Object)
	if !ok {
		return nil, fmt.Errorf("MCP config must be a mapping, have %s", value.Repr(doc))
	}
	entries, err := mcpEntries(root)
	if err != nil {
		return nil, err
	}
	var servers []harbor.MCPServer
	for _, entry := range entries {
		server, _, err := schema.Validate(value.Value(entry), harbor.DecodeMCPServer)
		if err != nil {
			return nil, err
		}
		servers = append(servers, server)
	}
	return servers, nil
}

func decodeMCPDocument(data []byte, suffix string) (value.Value, error) {
	switch suffix {
	case ".json":
		return value.Decode(data)
	case ".yaml", ".yml":
		return yaml11.Decode(data)
	case ".toml":
		text, err := value.ReadText(data)
		if err != nil {
			return nil, err
		}
		return toml.Decode(text)
	}
	return nil, jobdir.RuleError(fmt.Sprintf("Unsupported MCP config file format: %s", suffix))
}

// mcpEntries finds the servers: under mcpServers unless that is empty, else
// under mcp_servers, else in the environment table.
func mcpEntries(root *value.Object) ([]*value.Object, error) {
	desktop := root.Has("mcpServers")
	for _, find := range []func() value.Value{
		func() value.Value { v, _ := root.Get("mcpServers"); return v },
		func() value.Value { v, _ := root.Get("mcp_servers"); return v },
		func() value.Value {
			v, _ := root.Get("environment")
			if table, ok := v.(*value.Object); ok {
				v, _ = table.Get("mcp_servers")
				return v
			}
			return nil
		},
	} {
		switch servers := find().(type) {
		case *value.Object:
			if servers.Len() > 0 {
				return namedEntries(servers, desktop)
			}
		case value.List:
			if len(servers) > 0 {
				return listedEntries(servers, desktop)
			}
		}
	}
	return nil, nil
}

func namedEntries(servers *value.Object, desktop bool) ([]*value.Object, error) {
	var list []*value.Object
	for name, v := range servers.All() {
		entry, err := mcpEntry(v, desktop)
		if err != nil {
			return nil, err
		}
		entry.Set("name", value.Str(name))
		list = append(list, entry)
	}
	return list, nil
}

func listedEntries(servers value.List, desktop bool) ([]*value.Object, error) {
	var list []*value.Object
	for _, v := range servers {
		entry, err := mcpEntry(v, desktop)
		if err != nil {
			return nil, err
		}
		list = append(list, entry)
	}
	return list, nil
}

// mcpEntry keeps the keys that mean something, type under the name transport.
func mcpEntry(v value.Value, desktop bool) (*value.Object, error) {
	from, ok := v.(*value.Object)
	if !ok {
		return nil, fmt.Errorf("MCP server entries must be mappings, have %s", value.Repr(v))
	}
	entry := value.NewObject(0)
	for _, key := range []string{"name", "transport", "url", "command", "args"} {
		if value, ok := from.Get(key); ok {
			entry.Set(key, value)
		}
	}
	if kind, ok := from.Get("type"); ok && !entry.Has("transport") {
		entry.Set("transport", kind)
	}
	if desktop && entry.Has("command") && !entry.Has("transport") {
		entry.Set("transport", value.Str("stdio"))
	}
	return entry, nil
}
