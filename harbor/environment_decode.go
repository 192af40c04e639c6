package harbor

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// decodeEnvironment validates an environment table: legacy sizes first, then
// the fields, then what concerns several of them.
func decodeEnvironment(c *schema.Cursor, v value.Value) (Environment, bool) {
	return schema.Before(migrateSizes, schema.After(schema.Model("EnvironmentConfig", environmentFields(c)), func(e Environment) (Environment, error) {
		return e, e.Network.check()
	}))(c, v)
}

func environmentFields(c *schema.Cursor) func(*schema.Fields) Environment {
	return func(f *schema.Fields) Environment {
		e := Environment{
			Network: Network{
				Mode:         schema.Default(f, "network_mode", Public, decodeNetworkMode),
				AllowedHosts: schema.OptionalList(f, "allowed_hosts", DecodeHosts),
			},
			NetworkStated:   f.Has("network_mode") || f.Has("allow_internet"),
			BuildTimeoutSec: schema.Default(f, "build_timeout_sec", DefaultTimeoutSec, schema.Float),
			DockerImage:     schema.Optional(f, "docker_image", schema.Str),
			OS:              schema.Default(f, "os", Linux, decodeOS),
			CPUs:            schema.Optional(f, "cpus", schema.Int),
			MemoryMB:        schema.Optional(f, "memory_mb", schema.Int),
			StorageMB:       schema.Optional(f, "storage_mb", schema.Int),
			GPUs:            schema.Optional(f, "gpus", schema.Int),
			GPUTypes:        schema.OptionalList(f, "gpu_types", schema.List(schema.Str)),
			TPU:             schema.Optional(f, "tpu", DecodeTPU),
			MCPServers:      schema.Default(f, "mcp_servers", []MCPServer{}, schema.List(DecodeMCPServer)),
			Env:             schema.Default(f, "env", Env{}, schema.Dict(schema.Str)),
			SkillsDir:       schema.Optional(f, "skills_dir", schema.Str),
			Healthcheck:     schema.Optional(f, "healthcheck", schema.Model("HealthcheckConfig", healthcheckFields)),
			Workdir:         schema.Optional(f, "workdir", schema.Str),
		}
		migrateInternet(c, f, &e)
		return e
	}
}

func decodeOS(c *schema.Cursor, v value.Value) (OS, bool) {
	if s, ok := v.(value.Str); ok {
		v = value.Str(strings.ToLower(string(s)))
	}
	return schema.Enum(Linux, Windows)(c, v)
}

// migrateInternet turns the legacy switch allow_internet into a network mode,
// unless the table has network keys of its own.
func migrateInternet(c *schema.Cursor, f *schema.Fields, e *Environment) {
	allowed := schema.Optional(f, "allow_internet", schema.Bool)
	if !f.Has("allow_internet") {
		return
	}
	c.Warn("The 'allow_internet' field is deprecated. Use [environment].network_mode instead.")
	if allowed == nil || f.Has("network_mode") || f.Has("allowed_hosts") {
		return
	}
	e.Network.Mode = NoNetwork
	if *allowed {
		e.Network.Mode = Public
	}
}

// migrateSizes turns the legacy texts memory and storage into megabytes.
func migrateSizes(c *schema.Cursor, v value.Value) (value.Value, error) {
	obj, ok := v.(*value.Object)
	if !ok {
		return v, nil
	}
	for _, key := range [...]string{"memory", "storage"} {
		size, ok := obj.Get(key)
		if !ok {
			continue
		}
		newKey := key + "_mb"
		c.Warn(fmt.Sprintf("The '%s' field is deprecated. Use '%s' instead.", key, newKey))
		obj = without(obj, key)
		text, isText := size.(value.Str)
		if !isText {
			continue
		}
		mb, err := megabytes(string(text))
		if err != nil {
			return v, err
		}
		if old, given := obj.Get(newKey); given && !equalsInt(old, mb) {
			return v, exception.Errorf(exception.ValueError, "Conflicting '%s' and '%s' values: %s=%s (%s MB) != %s=%s.",
				key, newKey, key, value.Repr(text), mb, newKey, pyText(old))
		} else if !given {
			obj.Set(newKey, mb)
		}
	}
	return obj, nil
}

// megabytes reads a size like "1.5G", "512m" or "100K".
func megabytes(text string) (value.Int, error) {
	size := strings.ToUpper(value.Strip(text))
	var number string
	var factor float64
	switch {
	case strings.HasSuffix(size, "G"):
		number, factor = strings.TrimSuffix(size, "G"), 1024
	case strings.HasSuffix(size, "M"):
		number, factor = strings.TrimSuffix(size, "M"), 1
	case strings.HasSuffix(size, "K"):
		number, factor = strings.TrimSuffix(size, "K"), 1.0/1024
	default:
		return value.Int{}, exception.Errorf(exception.ValueError, "Invalid size format: %s. Expected format like '1G', '512M', etc.", size)
	}
	n, err := value.ParseFloat(number)
	if err != nil {
		return value.Int{}, err
	}
	return value.Truncate(float64(n) * factor)
}

// equalsInt is Python's == between a value and an int.
func equalsInt(v value.Value, n value.Int) bool {
	if b, ok := v.(value.Bool); ok {
		v = value.NewInt(0)
		if b {
			v = value.NewInt(1)
		}
	}
	number, ok := v.(value.Number)
	if !ok {
		return false
	}
	c, ordered := value.Compare(number, n)
	return ordered && c == 0
}

// pyText is Python's str of a value: its repr, but text without quotes.
func pyText(v value.Value) string {
	if s, ok := v.(value.Str); ok {
		return string(s)
	}
	return value.Repr(v)
}

// DecodeTPU validates a request for accelerator chips.
func DecodeTPU(c *schema.Cursor, v value.Value) (TPU, bool) {
	return schema.Model("TpuSpec", tpuFields)(c, v)
}

func tpuFields(f *schema.Fields) TPU {
	return TPU{
		Type:     schema.Required(f, "type", schema.NonEmpty),
		Topology: schema.Required(f, "topology", schema.After(schema.Str, checkTopology)),
	}
}

var topologyForm = regexp.MustCompile(`^[1-9]\p{Nd}*(x[1-9]\p{Nd}*)+$`)

func checkTopology(text string) (string, error) {
	topology := value.Strip(text)
	if !topologyForm.MatchString(topology) {
		return "", exception.Errorf(exception.ValueError, "Invalid TPU topology %s: expected dimensions separated by 'x' with each dimension "+
			"a positive integer (e.g., '2x4', '2x2x1', '4x4').", value.Repr(value.Str(topology)))
	}
	return topology, nil
}

// DecodeMCPServer validates a tool server.
func DecodeMCPServer(c *schema.Cursor, v value.Value) (MCPServer, bool) {
	return schema.After(schema.Model("MCPServerConfig", mcpFields), checkMCPServer)(c, v)
}

func mcpFields(f *schema.Fields) MCPServer {
	return MCPServer{
		Name:      schema.Required(f, "name", schema.Str),
		Transport: schema.Default(f, "transport", TransportSSE, decodeTransport),
		URL:       schema.Optional(f, "url", schema.Str),
		Command:   schema.Optional(f, "command", schema.Str),
		Args:      schema.Default(f, "args", []string{}, schema.List(schema.Str)),
	}
}

func decodeTransport(c *schema.Cursor, v value.Value) (string, bool) {
	if s, ok := v.(value.Str); ok && s == "http" {
		v = value.Str(TransportStreamableHTTP)
	}
	return schema.Literal(TransportStdio, TransportSSE, TransportStreamableHTTP)(c, v)
}

var errNoCommand = exception.Errorf(exception.ValueError, "'command' is required for transport 'stdio'")

func checkMCPServer(s MCPServer) (MCPServer, error) {
	switch {
	case s.Transport == TransportStdio && (s.Command == nil || *s.Command == ""):
		return s, errNoCommand
	case s.Transport != TransportStdio && (s.URL == nil || *s.URL == ""):
		return s, exception.Errorf(exception.ValueError, "'url' is required for transport '%s'", s.Transport)
	}
	return s, nil
}
