package job

import (
	"slices"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/redact"
	"github.com/proctor-run/proctor/internal/secret"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// hide puts marks in place of secrets in a configuration and a command line, which
// files and comparisons see from then on. literals are their values by the names of the
// marks, for whoever runs the trials. What Harbor redacts when it is written stays as
// it is.
func hide(cfg jobdir.Config, o *PrepareOptions) (hidden jobdir.Config, literals map[string]string) {
	secrets := secret.Source{Lookup: o.Lookup, Environ: o.Environ, Names: o.SecretNames}.OfJob(cfg)
	set := redact.New(secrets)
	if set == nil {
		return cfg, nil
	}
	literals = map[string]string{}
	for _, s := range secrets {
		if names := redact.Marked(redact.Mark(s.Name)); len(names) == 1 && literals[names[0]] == "" {
			literals[names[0]] = s.Value
		}
	}
	o.Invocation = each(o.Invocation, set.String)
	return mapConfig(cfg, func(name, text string) string {
		if harbor.RedactEnv(name, text, o.Lookup) != text {
			return text
		}
		return set.String(text)
	}, set.String), literals
}

// mapConfig applies env to the variables of a configuration and other to its settings
// and tool servers.
func mapConfig(cfg jobdir.Config, env func(name, text string) string, other func(string) string) jobdir.Config {
	cfg.Agents = slices.Clone(cfg.Agents)
	for i := range cfg.Agents {
		cfg.Agents[i] = mapAgent(cfg.Agents[i], env, other)
	}
	cfg.Environment = mapEnvironment(cfg.Environment, env, other)
	cfg.Verifier = mapVerifier(cfg.Verifier, env, other)
	return cfg
}

func mapAgent(a jobdir.AgentConfig, env func(name, text string) string, other func(string) string) jobdir.AgentConfig {
	a.Env, a.Kwargs = mapEnv(a.Env, env), mapObject(a.Kwargs, other)
	a.MCPServers = slices.Clone(a.MCPServers)
	for i := range a.MCPServers {
		s := &a.MCPServers[i]
		s.URL, s.Command, s.Args = mapText(s.URL, other), mapText(s.Command, other), each(s.Args, other)
	}
	return a
}

func mapEnvironment(e jobdir.EnvironmentConfig, env func(name, text string) string, other func(string) string) jobdir.EnvironmentConfig {
	e.Env, e.Kwargs = mapEnv(e.Env, env), mapObject(e.Kwargs, other)
	return e
}

func mapVerifier(v jobdir.VerifierConfig, env func(name, text string) string, other func(string) string) jobdir.VerifierConfig {
	v.Env, v.Kwargs = mapEnv(v.Env, env), mapObject(v.Kwargs, other)
	return v
}

func mapEnv(env jobdir.Env, f func(name, text string) string) jobdir.Env {
	out := jobdir.Env{Map: env.Clone()}
	for name, text := range env.All() {
		out.Set(name, f(name, text))
	}
	return out
}

func mapText(text *string, f func(string) string) *string {
	if text == nil {
		return nil
	}
	return new(f(*text))
}

func each(list []string, f func(string) string) []string {
	out := slices.Clone(list)
	for i, text := range out {
		out[i] = f(text)
	}
	return out
}

func mapObject(o *value.Object, f func(string) string) *value.Object {
	if o == nil {
		return nil
	}
	out := value.NewObject(o.Len())
	for name, v := range o.All() {
		out.Set(name, mapValue(v, f))
	}
	return out
}

func mapValue(v value.Value, f func(string) string) value.Value {
	switch v := v.(type) {
	case value.Str:
		return value.Str(f(string(v)))
	case value.List:
		out := make(value.List, len(v))
		for i, item := range v {
			out[i] = mapValue(item, f)
		}
		return out
	case *value.Object:
		return mapObject(v, f)
	}
	return v
}

// secrets are those of the job, for what it writes beside its trials.
func (r *Runner) secrets(p *Prepared) *redact.Set {
	source := secret.Source{Lookup: r.Trials.Lookup, Environ: r.Trials.Environ, Names: r.Trials.SecretNames}
	if !p.Redacted && p.literals == nil {
		return redact.New(source.OfJob(p.Config))
	}
	restore := restorer{r.lookupIn(p)}
	return redact.New(source.OfJob(mapConfig(p.Config, restore.variable, restore.text)))
}

// lookupIn finds what stands redacted in a job: what was given for it, else a variable
// of this machine.
func (r *Runner) lookupIn(p *Prepared) harbor.Lookup {
	return func(name string) (string, bool) {
		if text, ok := p.literals[name]; ok {
			return text, true
		}
		return r.Trials.Lookup(name)
	}
}
