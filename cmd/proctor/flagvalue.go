package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/agent"
	shipped "github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// optional is a flag whose absence differs from every value.
type optional[T any] struct {
	dst   **T
	parse func(string) (T, error)
	kind  string
}

func (o *optional[T]) Set(text string) error {
	v, err := o.parse(text)
	if err != nil {
		return err
	}
	*o.dst = &v
	return nil
}

func (o *optional[T]) String() string {
	if o == nil || o.dst == nil || *o.dst == nil {
		return ""
	}
	return fmt.Sprint(**o.dst)
}

func (o *optional[T]) Type() string { return o.kind }

// optionalVar defines a flag that leaves *dst nil unless it is given.
func optionalVar[T any](fs *pflag.FlagSet, dst **T, parse func(string) (T, error), name, short, usage string) {
	var zero T
	value := &optional[T]{dst: dst, parse: parse, kind: fmt.Sprintf("%T", zero)}
	flag := fs.VarPF(value, name, short, usage)
	if _, isBool := any(zero).(bool); isBool {
		flag.NoOptDefVal = "true"
	}
}

// list is a repeatable flag. Several flags may fill one list, in the order of
// the command line.
type list struct{ dst *[]string }

func (l list) Set(text string) error {
	*l.dst = append(*l.dst, text)
	return nil
}

func (l list) String() string {
	if l.dst == nil {
		return ""
	}
	return strings.Join(*l.dst, ",")
}

// Type is the name that completion knows repeatable flags by.
func (l list) Type() string { return "stringArray" }

// listVar defines a repeatable flag. Its aliases are hidden.
func listVar(fs *pflag.FlagSet, dst *[]string, name, short, usage string, aliases ...string) {
	fs.VarP(list{dst}, name, short, usage)
	for _, alias := range aliases {
		fs.Var(list{dst}, alias, "as --"+name)
		fs.Lookup(alias).Hidden = true
	}
}

func parseString(s string) (string, error) { return s, nil }

// parseInt reads a number as Python does, where Harbor's command line comes from.
func parseInt(s string) (int, error) {
	n, err := value.ParseInt(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	v, ok := n.Int64()
	if !ok || int64(int(v)) != v {
		return 0, fmt.Errorf("%q is out of range", s)
	}
	return int(v), nil
}

// parseFloat reads a number as Python does.
func parseFloat(s string) (float64, error) {
	f, err := value.ParseFloat(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return float64(f), nil
}

func parseBool(s string) (bool, error) {
	b, err := strconv.ParseBool(s)
	if err != nil {
		return false, fmt.Errorf("%q is neither true nor false", s)
	}
	return b, nil
}

func parseNotBool(s string) (bool, error) {
	b, err := parseBool(s)
	return !b, err
}

func parseAgent(s string) (string, error) {
	return oneOf(s, "an agent", agents().Names(), agents().HarborOnly())
}

// agents are those that can be chosen in this program.
func agents() agent.Registry { return shipped.All() }

// checkAgents refuses agents that no trial could run with, before anything is
// done. What a job directory holds that is there already is let be: others may
// have made it, and finished trials need no agent.
func checkAgents(cfg jobdir.Config, cube bool) error {
	if isFile(resultFile(cfg.Dir())) {
		return nil
	}
	if err := job.CheckAgents(cfg.Agents, agents(), cube); err != nil {
		return usageErrorf("%w", err)
	}
	return nil
}

func parseEnvironment(s string) (string, error) {
	return oneOf(s, "an environment", slices.Concat([]string{sandboxes.Auto}, backends().Names()), harborEnvironments)
}

var harborEnvironments = []string{
	"daytona", "e2b", "modal", "runloop", "langsmith", "gke", "novita", "apple-container", "singularity", "islo",
	"tensorlake", "cwsandbox", "wandb", "use-computer",
}

func parsePolicy(s string) (string, error) {
	return oneOf(strings.ToLower(s), "a policy", []string{"auto", "limit", "request", "guarantee", "ignore"}, nil)
}
