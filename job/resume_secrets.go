package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/redact"
	"github.com/proctor-run/proctor/internal/secret"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/value"
)

// secrets are what a stored configuration holds redacted (Harbor job format,
// section 1.8, and proctor's marks): files keep the redacted text, so that trials stay
// the same, and commands get the value that the environment has.
type secrets struct {
	lookup harbor.Lookup
	// given and missing are the variables, with where they are used.
	given, missing []use
}

// use is a variable that is needed in a place of the configuration.
type use struct{ at, variable string }

// findSecrets looks for redacted values in a configuration that was read back.
func findSecrets(c jobdir.Config, lookup harbor.Lookup) *secrets {
	s := &secrets{lookup: lookup}
	for i, a := range c.Agents {
		at := fmt.Sprintf("agents[%d].", i)
		s.env(at+"env", a.Env)
		s.object(at+"kwargs", a.Kwargs)
		for k, server := range a.MCPServers {
			for _, text := range append([]*string{server.URL, server.Command}, pointersTo(server.Args)...) {
				if text != nil {
					s.text(fmt.Sprintf("%smcp_servers[%d]", at, k), *text)
				}
			}
		}
	}
	s.env("environment.env", c.Environment.Env)
	s.object("environment.kwargs", c.Environment.Kwargs)
	s.env("verifier.env", c.Verifier.Env)
	s.object("verifier.kwargs", c.Verifier.Kwargs)
	return s
}

func pointersTo(list []string) []*string {
	out := make([]*string, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

func (s *secrets) env(at string, env jobdir.Env) {
	for name, text := range env.All() {
		if secret.Masked(name, text) {
			s.need(at+"."+name, name)
		}
		s.text(at+"."+name, text)
	}
}

func (s *secrets) object(at string, o *value.Object) {
	if o == nil {
		return
	}
	for name, v := range o.All() {
		s.value(at+"."+name, v)
	}
}

func (s *secrets) value(at string, v value.Value) {
	switch v := v.(type) {
	case value.Str:
		s.text(at, string(v))
	case value.List:
		for i, item := range v {
			s.value(fmt.Sprintf("%s[%d]", at, i), item)
		}
	case *value.Object:
		s.object(at, v)
	}
}

func (s *secrets) text(at, text string) {
	for _, name := range redact.Marked(text) {
		s.need(at, name)
	}
}

func (s *secrets) need(at, variable string) {
	list := &s.missing
	if _, ok := found(s.lookup, variable); ok {
		list = &s.given
	}
	if u := (use{at, variable}); !slices.Contains(*list, u) {
		*list = append(*list, u)
	}
}

// warnings say which values are redacted and where they come from now.
func (s *secrets) warnings() []string {
	var list []string
	if len(s.given) > 0 {
		var places []string
		for _, u := range s.given {
			places = append(places, u.at)
		}
		list = append(list, fmt.Sprintf("redacted in %s, taken from the environment: %s", scan.ConfigFile, strings.Join(places, ", ")))
	}
	for _, u := range s.missing {
		list = append(list, fmt.Sprintf("%s is redacted in %s and not set in the environment: trials would get the redacted text; set %s to its value", u.at, scan.ConfigFile, u.variable))
	}
	return list
}

// found finds the variable that a redacted value was called by: settings have names in
// lower case, variables mostly not.
func found(lookup harbor.Lookup, name string) (string, bool) {
	if text, ok := lookup(name); ok {
		return text, true
	}
	return lookup(strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
}

// restorer puts values in place of redacted ones.
type restorer struct{ lookup harbor.Lookup }

func (r restorer) variable(name, text string) string {
	if secret.Masked(name, text) {
		if now, ok := r.lookup(name); ok {
			return now
		}
	}
	return r.text(text)
}

func (r restorer) text(text string) string {
	for _, name := range redact.Marked(text) {
		if now, ok := found(r.lookup, name); ok {
			text = strings.ReplaceAll(text, redact.Mark(name), now)
		}
	}
	return text
}

// restoreSecrets puts the values that lookup finds in place of redacted ones.
func restoreSecrets(c jobdir.TrialConfig, lookup harbor.Lookup) jobdir.TrialConfig {
	r := restorer{lookup}
	c.Agent = mapAgent(c.Agent, r.variable, r.text)
	c.Environment = mapEnvironment(c.Environment, r.variable, r.text)
	c.Verifier = mapVerifier(c.Verifier, r.variable, r.text)
	return c
}
