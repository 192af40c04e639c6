package agent

import (
	"io"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

// Config is what an agent is made of. A constructor keeps what it needs; nothing
// of it changes afterwards.
type Config struct {
	// Name is the entry's.
	Name string
	// Model is "provider/model" or the bare name; empty when none was given.
	Model string
	// Settings are the agent's own, "kwargs" in configurations; nil for none. All
	// names in it are known to the entry.
	Settings *value.Object
	// Env is set for the agent's commands, KEY=VALUE. Templates in it are
	// resolved: it may hold secrets.
	Env []string
	// Lookup finds variables of this machine, for settings that have one; nil where a
	// configuration is only checked.
	Lookup func(name string) (string, bool)
	// LogDir is the host directory that keeps the agent's files. It is empty
	// where a configuration is only checked.
	LogDir string
	// OutputLimit bounds each output file that the agent writes there, in bytes.
	OutputLimit int64
	// Redact returns a writer to w that leaves out the values of secrets, as [Env] has
	// it; nil changes nothing.
	Redact func(w io.Writer) io.WriteCloser

	// Models opens the models that an agent calls itself, on this machine; nil where a
	// configuration is only checked.
	Models llm.Opener

	// Solution finds the task's solution, or that of one of its steps. Only
	// entries that ask for it have it, and only for tasks in a sandbox.
	Solution func(step string) Solution
	// Solver plays the solution of a task that is stepped. Only entries that ask
	// for it have it; it is nil where the solution is not known.
	Solver cube.Agent
}

// Solution is a script that solves a task (Harbor agent format, section 2.2).
type Solution struct {
	// Dir is the solution directory on the host, Script its entry relative to
	// it. Step names the step that the directory belongs to; empty for the
	// task's own.
	Dir, Script, Step string
	// Env gives the solution's variables, KEY=VALUE, later entries win. It is
	// called when the solution is about to start, so that a missing variable is
	// an error of the agent.
	Env func() ([]string, error)
}

// Setting is one of an agent's settings.
type Setting struct {
	Name, Summary string
	// Text settings are text also where it looks like a number or a word of
	// JSON.
	Text bool
	// Typed settings are text as it is typed on a command line, and in a configuration
	// what the agent makes of them.
	Typed bool
	// Required settings must be there, and not blank.
	Required bool
}

// Setting returns a setting, nil when it is not there.
func (c Config) Setting(name string) value.Value {
	if c.Settings == nil {
		return nil
	}
	v, _ := c.Settings.Get(name)
	return v
}

// Text returns a setting that is text, "" when it is not there or is something
// else.
func (c Config) Text(name string) string {
	s, _ := c.Setting(name).(value.Str)
	return string(s)
}

// Whole returns a setting that is a whole number from least to most; absent where it is
// not there.
func (c Config) Whole(name string, least, most, absent int64) (int64, error) {
	v := c.Setting(name)
	if value.IsNull(v) {
		return absent, nil
	}
	if n, ok := v.(value.Int); ok {
		if i, small := n.Int64(); small && i >= least && i <= most {
			return i, nil
		}
	}
	return absent, invalidf("agent %s: setting %s is %s, want a whole number from %d to %d", c.Name, name, value.ShortRepr(value.Repr(v)), least, most)
}

// Flag returns a setting that is true or false; absent where it is not there.
func (c Config) Flag(name string, absent bool) (bool, error) {
	v := c.Setting(name)
	if value.IsNull(v) {
		return absent, nil
	}
	if b, ok := v.(value.Bool); ok {
		return bool(b), nil
	}
	return absent, invalidf("agent %s: setting %s is %s, want true or false", c.Name, name, value.ShortRepr(value.Repr(v)))
}

// shareSetting says whether trials may share what [Provisioner] installs. It is the
// driver's business, like the two below.
const shareSetting = "share_install"

// ShareSetting is a setting of every agent that is a [Provisioner].
func ShareSetting() Setting {
	return Setting{Name: shareSetting, Summary: "`false`: each trial installs for itself, and none begins with what another attempt at its task has installed"}
}

// Shares returns [ShareSetting], true when it is not there.
func (c Config) Shares() (bool, error) { return c.Flag(shareSetting, true) }

// MaxStepsSetting is a setting that every agent has on tasks that are stepped:
// how many turns an episode has at most. It is the driver's business; agents need
// not look at it.
const MaxStepsSetting = "max_steps"

// MaxSteps returns [MaxStepsSetting], 0 when it is not there.
func (c Config) MaxSteps() (int, error) {
	n, err := c.Whole(MaxStepsSetting, 1, maxMaxSteps, 0)
	if v := c.Setting(MaxStepsSetting); v != nil && err == nil && n == 0 { // null is no number of steps
		err = invalidf("agent %s: setting %s is %s, want a whole number from 1 to %d", c.Name, MaxStepsSetting, value.Repr(v), maxMaxSteps)
	}
	return int(n), err
}

// ImageSetting is a setting of every agent that works in a sandbox of its own when it plays
// a task that is stepped ([Entry].UsesTools): the image of that sandbox, where the backend
// has images. It is the driver's business, too.
const ImageSetting = "sandbox_image"

// SandboxImage returns [ImageSetting], "" when it is not there.
func (c Config) SandboxImage() (string, error) {
	v := c.Setting(ImageSetting)
	image, ok := v.(value.Str)
	if v != nil && (!ok || strings.TrimSpace(string(image)) == "") {
		return "", invalidf("agent %s: setting %s is %s, want the reference of an image", c.Name, ImageSetting, value.ShortRepr(value.Repr(v)))
	}
	return string(image), nil
}

// maxMaxSteps bounds what may be asked for.
const maxMaxSteps = 1_000_000

// invalidf is an error of a configuration, as results record it.
func invalidf(format string, args ...any) error {
	return exception.Errorf(exception.ValueError, format, args...)
}

// checkNames reports settings that the entry does not have.
func (e Entry) checkNames(c Config, stepped bool) error {
	if c.Settings == nil || e.AnySetting {
		return nil
	}
	for name := range c.Settings.Keys() {
		switch {
		case slices.ContainsFunc(e.Settings, func(s Setting) bool { return s.Name == name }):
		case name == MaxStepsSetting && e.plays(stepped), name == ImageSetting && e.WorksApart(stepped):
		case name == MaxStepsSetting:
			return invalidf("agent %s: %s is for tasks that are stepped; these run in a sandbox, where the time limit counts", e.Name, name)
		case name == ImageSetting && e.UsesTools:
			return invalidf("agent %s: %s is for tasks that are stepped; these have an environment of their own, in which the agent works", e.Name, name)
		default:
			return invalidf("agent %s has no setting %s%s", e.Name, name, e.knownSettings(name))
		}
	}
	return nil
}

// plays reports whether the agent steps tasks: those of cubes, or any when it
// can do nothing else.
func (e Entry) plays(stepped bool) bool {
	return stepped && e.PlaysCubes() || e.Stepped != nil && e.Sandboxed == nil
}

// WorksApart reports whether the agent works in a sandbox of its own, which is not that of the
// task: it plays a task that is stepped, by its tools.
func (e Entry) WorksApart(stepped bool) bool { return stepped && e.Stepped == nil && e.PlaysCubes() }

// checkDriven reports mistakes in the settings that are the driver's business.
func (e Entry) checkDriven(c Config, stepped bool) error {
	if slices.ContainsFunc(e.Settings, func(s Setting) bool { return s.Name == shareSetting }) {
		if _, err := c.Shares(); err != nil {
			return err
		}
	}
	if e.plays(stepped) {
		if _, err := c.MaxSteps(); err != nil {
			return err
		}
	}
	if e.WorksApart(stepped) {
		if _, err := c.SandboxImage(); err != nil {
			return err
		}
	}
	return nil
}

// check reports settings that the entry lacks or cannot read.
func (e Entry) check(c Config, stepped bool) error {
	if err := e.checkDriven(c, stepped); err != nil {
		return err
	}
	for _, s := range e.Settings {
		v := c.Setting(s.Name)
		text, isText := v.(value.Str)
		switch {
		case v == nil && !s.Required:
		case v == nil, s.Required && isText && strings.TrimSpace(string(text)) == "":
			return invalidf("agent %s: setting %s is missing: %s; give it as --ak %s='…'", e.Name, s.Name, s.Summary, s.Name)
		case s.Text && !isText:
			return invalidf("agent %s: setting %s is %s, want text: put it in quotes", e.Name, s.Name, value.Repr(v))
		}
	}
	if e.CallsModel {
		if c.Model == "" {
			return modelMissing(c)
		}
		if _, err := c.Sampling(); err != nil {
			return err
		}
	}
	if e.Check == nil {
		return nil
	}
	return e.Check(c)
}
