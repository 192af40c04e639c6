package cube

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/proctor-run/proctor/cube/typed"
)

// Observation is what an agent sees after a step: contents in order.
type Observation struct {
	link
	Contents []Content `json:"contents" default:"[]"`
}

// TypeName is the name of the type in documents.
func (*Observation) TypeName() string { return "cube.core.Observation" }

// Observe returns an observation of the contents.
func Observe(contents ...Content) *Observation { return &Observation{Contents: contents} }

// Append adds the contents of other to o, sharing them, and returns o. other
// is not changed and may be nil.
func (o *Observation) Append(other *Observation) *Observation {
	if other != nil {
		o.Contents = append(o.Contents, other.Contents...)
	}
	return o
}

// Markdown renders the contents for people, with blank lines between.
func (o *Observation) Markdown() (string, error) {
	parts := make([]string, len(o.Contents))
	for i, c := range o.Contents {
		part, err := c.Markdown()
		if err != nil {
			return "", err
		}
		parts[i] = part
	}
	return strings.Join(parts, "\n\n"), nil
}

// Messages returns one chat message per content.
func (o *Observation) Messages() (List, error) {
	out := make(List, len(o.Contents))
	for i, c := range o.Contents {
		m, err := Message(c)
		if err != nil {
			return nil, err
		}
		out[i] = m
	}
	return out, nil
}

// checkObservation refuses what the driver, or whoever writes the output, could
// not handle: no observation, content that is nil, data that contains itself.
func checkObservation(obs *Observation, source string) error {
	if obs == nil {
		return TypeErrorf("%s returned no observation", source)
	}
	for i, c := range obs.Contents {
		if isNil(c) {
			return TypeErrorf("%s returned an observation whose content %d is nil", source, i)
		}
		if s, ok := c.(*StructuredContent); ok {
			if err := typed.CheckNesting(fmt.Sprintf("content %d of what %s returned", i, source), s.Data.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// isNil reports whether an interface holds nothing, or a nil pointer.
func isNil(c Content) bool {
	if c == nil {
		return true
	}
	v := reflect.ValueOf(c)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// EnvironmentOutput is what a step returns.
type EnvironmentOutput struct {
	Obs    *Observation `json:"obs" cube:"required"`
	Reward float64      `json:"reward" default:"0.0"`
	Done   bool         `json:"done" default:"false"`
	// Truncated is always false: limits are the business of what drives the
	// agent.
	Truncated bool `json:"truncated" default:"false"`
	// Info is what Evaluate told; empty when it was not called. In JSON it
	// also has the key "profiling", see FullInfo.
	Info Info `json:"info" default:"{}"`
	// Error is set when an action failed; the step then ended the task, unless
	// the task follows the later rules.
	Error *StepError `json:"error"`

	// Profiling is how long the parts of the step took. It is nil in an output
	// that was read: its Info has the key then.
	Profiling *Profiling `json:"-"`
}

// TypeName is the name of the type in documents.
func (*EnvironmentOutput) TypeName() string { return "cube.core.EnvironmentOutput" }

// FullInfo returns a copy of Info with the key "profiling": last, or in the
// place of a key of that name.
func (o *EnvironmentOutput) FullInfo() Info {
	info := o.Info.Clone()
	if o.Profiling != nil {
		info.Set("profiling", o.Profiling.object())
	}
	return info
}

// CompleteDump puts the profiling into what is written as info.
func (o *EnvironmentOutput) CompleteDump(out *Object) {
	if o.Profiling != nil {
		out.Set("info", o.FullInfo())
	}
}

// Profiling holds seconds (CUBE, section 4.4).
type Profiling struct {
	// Actions is the number of executed actions, ToolExecute their time; both
	// are left out of JSON when nothing was executed.
	Actions     int
	ToolExecute float64
	// Evaluate is nil when Evaluate was not called.
	Evaluate       *float64
	ObsPostprocess float64
}

func (p *Profiling) object() *Object {
	out := &Object{}
	if p.Actions > 0 {
		out.Append("tool_execute", Pairs("total", p.ToolExecute,
			"avg_per_action", p.ToolExecute/float64(p.Actions), "n_actions", p.Actions))
	}
	if p.Evaluate != nil {
		out.Append("evaluate", Float(*p.Evaluate))
	}
	out.Append("obs_postprocess", Float(p.ObsPostprocess))
	return out
}

// StepError is an action that failed, as data.
type StepError struct {
	link
	ErrorType    string `json:"error_type"`
	ExceptionStr string `json:"exception_str"`
	StackTrace   string `json:"stack_trace"`
}

// TypeName is the name of the type in documents.
func (*StepError) TypeName() string { return "cube.core.StepError" }

// newStepError describes an error: its class name ([ErrorType]), its text and
// where it came from.
func newStepError(err error) *StepError {
	kind := ErrorType(err)
	trace := kind + ": " + err.Error() + "\n"
	if p, ok := err.(*PanicError); ok && p.Stack != "" { //nolint:errorlint // the stack of an error inside is not that of the text
		trace = strings.TrimSuffix(p.Stack, "\n") + "\n" + trace
	}
	return &StepError{ErrorType: kind, ExceptionStr: err.Error(), StackTrace: trace}
}
