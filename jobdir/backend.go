package jobdir

import (
	"slices"
	"strings"
)

// proctorPrefix marks sandbox backends that Harbor does not know in the
// import path of an environment, so that its tools can read the file.
const proctorPrefix = "proctor:"

// SetBackend chooses the sandbox backend. Harbor's environment types are
// written as type, any other as import path "proctor:<name>".
func (e *EnvironmentConfig) SetBackend(name string) {
	if !slices.Contains(environmentTypes, name) {
		e.Type, e.ImportPath = nil, new(proctorPrefix+name)
		return
	}
	e.Type, e.ImportPath = &name, nil
}

// Backend names the sandbox backend; ok is false when the configuration names
// Python code, which cannot be run here.
func (e EnvironmentConfig) Backend() (name string, ok bool) {
	if e.ImportPath != nil {
		return strings.CutPrefix(*e.ImportPath, proctorPrefix)
	}
	if e.Type != nil {
		return *e.Type, true
	}
	return defaultEnvironment, true
}
