package trial

import (
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// KeepContainers is the setting of an environment (--ek) that keeps the
// containers of a trial, stopped (Harbor task format, section 5.10).
const KeepContainers = "keep_containers"

// KeepsSandbox reports whether the sandbox of the agent is stopped and left for
// inspection, instead of removed.
func KeepsSandbox(cfg jobdir.EnvironmentConfig) bool {
	if cfg.Kwargs != nil {
		if v, ok := cfg.Kwargs.Get(KeepContainers); ok && v == value.Bool(true) {
			return true
		}
	}
	return !cfg.Delete
}
