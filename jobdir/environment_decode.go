package jobdir

import (
	"slices"
	"strings"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// environmentTypes lists the environment types that configurations may name.
// proctor runs some of them; the others are accepted so that files of other
// runners can be read and scored.
var environmentTypes = []string{
	"docker", "daytona", "e2b", "modal", "runloop", "langsmith", "gke", "novita", "apple-container",
	"singularity", "islo", "tensorlake", "cwsandbox", "wandb", "use-computer",
}

// HarborEnvironments lists the environment types that Harbor knows (Harbor job format,
// section 1.4). The list is the caller's.
func HarborEnvironments() []string { return slices.Clone(environmentTypes) }

// DecodeEnvironment validates an environment configuration, with its older
// spellings (Harbor job format, section 1.4).
func DecodeEnvironment(c *schema.Cursor, v value.Value) (EnvironmentConfig, bool) {
	return schema.Before(legacyMounts, schema.Model("EnvironmentConfig", environmentFields))(c, v)
}

func environmentFields(f *schema.Fields) EnvironmentConfig {
	f.Ignore("suppress_override_warnings")
	e := EnvironmentConfig{
		Type:                    schema.Optional(f, "type", schema.Enum(environmentTypes...)),
		ImportPath:              schema.Optional(f, "import_path", schema.Str),
		ForceBuild:              schema.Default(f, "force_build", false, schema.Bool),
		Delete:                  schema.Default(f, "delete", true, schema.Bool),
		CPUEnforcementPolicy:    schema.Default(f, "cpu_enforcement_policy", policyAuto, decodePolicy),
		MemoryEnforcementPolicy: schema.Default(f, "memory_enforcement_policy", policyAuto, decodePolicy),
		OverrideCPUs:            schema.Optional(f, "override_cpus", schema.SmallInt),
		OverrideMemoryMB:        schema.Optional(f, "override_memory_mb", schema.SmallInt),
		OverrideStorageMB:       schema.Optional(f, "override_storage_mb", schema.SmallInt),
		OverrideGPUs:            schema.Optional(f, "override_gpus", schema.SmallInt),
		OverrideTPU:             schema.Optional(f, "override_tpu", harbor.DecodeTPU),
		Mounts:                  schema.OptionalList(f, "mounts", schema.List(decodeMount)),
		ExtraDockerCompose:      schema.Default(f, "extra_docker_compose", nil, schema.List(schema.Path)),
		Env:                     schema.Default(f, "env", Env{}, schema.Before(envFromList, decodeEnv)),
		Kwargs:                  schema.Default(f, "kwargs", nil, schema.Object),
		ExtraAllowedHosts:       schema.Default(f, "extra_allowed_hosts", nil, harbor.DecodeHosts),
	}
	if e.Type == nil && e.ImportPath == nil {
		e.Type = new(defaultEnvironment)
	}
	return e
}

// legacyMounts reads mounts_json as mounts, unless mounts is there.
func legacyMounts(_ *schema.Cursor, v value.Value) (value.Value, error) {
	obj, ok := v.(*value.Object)
	if !ok {
		return v, nil
	}
	legacy, ok := obj.Get("mounts_json")
	if !ok {
		return v, nil
	}
	_, given := obj.Get("mounts")
	out := &value.Object{}
	for key, item := range obj.All() {
		if key != "mounts_json" {
			out.Set(key, item)
		}
	}
	if !given {
		out.Set("mounts", legacy)
	}
	return out, nil
}

// envFromList reads a list of KEY=VALUE as a table, both sides trimmed.
func envFromList(_ *schema.Cursor, v value.Value) (value.Value, error) {
	list, ok := v.(value.List)
	if !ok {
		return v, nil
	}
	out := &value.Object{}
	for _, item := range list {
		text, _ := item.(value.Str)
		key, assigned, ok := strings.Cut(string(text), "=")
		if !ok {
			return v, RuleError("Invalid env var format: " + value.Repr(item) + ". Expected KEY=VALUE")
		}
		out.Set(strings.TrimSpace(key), value.Str(strings.TrimSpace(assigned)))
	}
	return out, nil
}

// decodePolicy accepts a resource enforcement policy in any letter case.
func decodePolicy(c *schema.Cursor, v value.Value) (string, bool) {
	if s, ok := v.(value.Str); ok {
		v = value.Str(strings.ToLower(string(s)))
	}
	return schema.Enum(policyAuto, "limit", "request", "guarantee", "ignore")(c, v)
}

// decodeMount validates a compose service volume; keys come out in the order
// of the compose model.
func decodeMount(c *schema.Cursor, v value.Value) (*value.Object, bool) {
	if _, ok := v.(*value.Object); !ok {
		c.Fail("dict_type", "Input should be a valid dictionary", v)
		return nil, false
	}
	return schema.Model("ServiceVolumeConfig", mountFields)(c, v)
}

func mountFields(f *schema.Fields) *value.Object {
	out := &value.Object{}
	out.Set("type", value.Str(schema.Required(f, "type", schema.Literal("bind", "volume", "image"))))
	out.Set("source", value.Str(schema.Required(f, "source", schema.Str)))
	out.Set("target", value.Str(schema.Required(f, "target", schema.Str)))
	setGiven(f, out, "read_only", onlyBool(true))
	setGiven(f, out, "bind", subFields("create_host_path", onlyBool(false)))
	setGiven(f, out, "volume", subFields("subpath", strValue))
	setGiven(f, out, "image", subFields("subpath", strValue))
	return out
}

// setGiven copies a key that may be absent.
func setGiven(f *schema.Fields, out *value.Object, key string, d schema.Decoder[value.Value]) {
	if f.Has(key) {
		out.Set(key, schema.Required(f, key, d))
	}
}

func strValue(c *schema.Cursor, v value.Value) (value.Value, bool) {
	s, ok := schema.Str(c, v)
	return value.Str(s), ok
}

func onlyBool(want bool) schema.Decoder[value.Value] {
	return func(c *schema.Cursor, v value.Value) (value.Value, bool) {
		if b, ok := v.(value.Bool); !ok || bool(b) != want {
			c.Fail("literal_error", "Input should be "+value.Repr(value.Bool(want)), v)
			return nil, false
		}
		return v, true
	}
}

// subFields validates a table with one optional key.
func subFields(key string, d schema.Decoder[value.Value]) schema.Decoder[value.Value] {
	return func(c *schema.Cursor, v value.Value) (value.Value, bool) {
		if _, ok := v.(*value.Object); !ok {
			c.Fail("dict_type", "Input should be a valid dictionary", v)
			return nil, false
		}
		return schema.Model("ServiceVolume", func(f *schema.Fields) value.Value {
			out := &value.Object{}
			setGiven(f, out, key, d)
			return out
		})(c, v)
	}
}
