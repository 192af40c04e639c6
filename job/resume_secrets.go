package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/schema"
)

// secrets are what a stored configuration holds redacted (Harbor job format,
// section 1.8): files keep the redacted text, so that trials stay the same, and
// commands get the value that the environment has.
type secrets struct {
	lookup harbor.Lookup
	// given and missing name the variables, by where they stand.
	given, missing []string
}

// mask is what redaction leaves of a value.
const mask = "****"

// masked tells a value that was redacted.
func masked(name, value string) bool {
	return schema.Sensitive(name) && strings.Contains(value, mask) && harbor.RedactEnv(name, value, nil) == value
}

// findSecrets looks for redacted values in a configuration that was read back.
func findSecrets(c jobdir.Config, lookup harbor.Lookup) *secrets {
	s := &secrets{lookup: lookup}
	for i, a := range c.Agents {
		s.look(fmt.Sprintf("agents[%d].env", i), a.Env)
	}
	s.look("environment.env", c.Environment.Env)
	s.look("verifier.env", c.Verifier.Env)
	return s
}

func (s *secrets) look(at string, env jobdir.Env) {
	for name, value := range env.All() {
		if !masked(name, value) {
			continue
		}
		if _, ok := s.lookup(name); ok {
			s.given = append(s.given, at+"."+name)
		} else {
			s.missing = append(s.missing, at+"."+name)
		}
	}
}

// warnings say which values are redacted and where they come from now.
func (s *secrets) warnings() []string {
	var list []string
	if len(s.given) > 0 {
		list = append(list, fmt.Sprintf("redacted in %s, taken from the environment: %s", scan.ConfigFile, strings.Join(s.given, ", ")))
	}
	for _, at := range s.missing {
		name := at[strings.LastIndexByte(at, '.')+1:]
		list = append(list, fmt.Sprintf("%s is redacted in %s and not set in the environment: trials would get the redacted text; set %s to its value", at, scan.ConfigFile, name))
	}
	return list
}

// restoreSecrets puts the environment's values in place of redacted ones.
func restoreSecrets(c jobdir.TrialConfig, lookup harbor.Lookup) jobdir.TrialConfig {
	c.Agent.Env = restored(c.Agent.Env, lookup)
	c.Environment.Env = restored(c.Environment.Env, lookup)
	c.Verifier.Env = restored(c.Verifier.Env, lookup)
	return c
}

func restored(env jobdir.Env, lookup harbor.Lookup) jobdir.Env {
	names := slices.Collect(func(yield func(string) bool) {
		for name, value := range env.All() {
			if _, ok := lookup(name); ok && masked(name, value) && !yield(name) {
				return
			}
		}
	})
	if len(names) == 0 {
		return env
	}
	out := jobdir.Env{Map: env.Clone()}
	for _, name := range names {
		value, _ := lookup(name)
		out.Set(name, value)
	}
	return out
}
