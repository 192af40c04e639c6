package terminus

import (
	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

const (
	agentName    = "terminus-2"
	agentVersion = "2.0.0"

	defaultMaxTurns  = 1_000_000
	defaultThreshold = 8000 // tokens
	defaultWidth     = 160
	defaultHeight    = 40
	maxPaneSize      = 10_000 // what tmux takes, in characters
)

// The settings' names, and what they are (section 4.1).
func ownSettings() []agent.Setting {
	return []agent.Setting{
		{Name: "parser_name", Summary: "the form of the model's answers: `json`, which is the default, or `xml`", Text: true},
		{Name: "max_turns", Summary: "how many answers the model may give in a run; 1,000,000 unless given"},
		{Name: "max_episodes", Summary: "the same, where max_turns is not given"},
		{Name: "episodes", Summary: "the same, an older name"},
		{Name: "suppress_max_turns_warning", Summary: "`true`: no warning that the number of turns is limited"},
		{Name: "collect_rollout_details", Summary: "`true`: the results hold token ids and log probabilities, where the server tells them"},
		{Name: "session_id", Summary: "the id of the session in trajectories; it is sent to the server, too. A random one that is not sent unless given", Text: true},
		{Name: "enable_summarize", Summary: "`false`: a conversation that becomes too long is not replaced by a summary, and ends the run"},
		{Name: "proactive_summarization_threshold", Summary: "the conversation is summarised when fewer tokens than these are left; 8000 unless given"},
		{Name: "trajectory_config", Summary: "a JSON object: `raw_content` true keeps the model's answers as they came, `linear_history` true begins a new trajectory file with each summary"},
		{Name: "tmux_pane_width", Summary: "the terminal's width in characters; 160 unless given"},
		{Name: "tmux_pane_height", Summary: "the terminal's height in lines; 40 unless given"},
		{Name: "store_all_messages", Summary: "`true`: the results' metadata hold the conversation"},
		{Name: "record_terminal_session", Summary: "`false`: no recording of the terminal; `true`: asciinema is installed for it where it is missing, while by default it is only if tmux is, too"},
		agent.ShareSetting(),
		{Name: "interleaved_thinking", Summary: "`true`: the model is sent its earlier reasoning"},
		{Name: "use_responses_api", Summary: "`true`: the protocol `responses`, and only what is new of the conversation is sent"},
		{Name: "llm_backend", Summary: "`litellm`, which stands for the models of this program", Text: true},
		{Name: "llm_kwargs", Summary: "a JSON object: `extra_body` holds members for the body of every request"},
		{Name: "llm_call_kwargs", Summary: "a JSON object: members for the body of every request, also in `extra_body`; they count before those of `llm_kwargs`"},
	}
}

// Entry returns the agent for a registry.
func Entry() agent.Entry {
	return agent.Entry{
		Name:     agentName,
		Summary:  "a model at a terminal in the sandbox, as Harbor's terminus-2",
		Settings: append(agent.ModelSettings(), ownSettings()...),

		CallsModel: true,
		Check: func(c agent.Config) error {
			_, err := readSettings(c)
			return err
		},
		Sandboxed: func(c agent.Config) (agent.Agent, error) { return newAgent(c, surroundings{}) },
	}
}

// record says whether the terminal is recorded.
type record int

const (
	recordIfEasy record = iota
	recordNever
	recordAlways // as far as it is possible
)

// settings are the agent's, as they have been checked.
type settings struct {
	parser                     parser
	maxTurns                   int64
	limited                    bool // a warning of maxTurns is due
	rollouts                   bool
	givenSession               string // empty unless given
	summarise                  bool
	threshold                  int64
	rawContent, linear         bool
	width, height              int64
	storeMessages, interleaved bool
	record                     record
	chained                    bool          // only what is new is sent
	constructor                *value.Object // llm_kwargs; nil for none
	// request has all that is the same in each.
	request llm.Request
}

// readSettings checks a configuration. The error tells what is wrong with it.
func readSettings(c agent.Config) (settings, error) {
	r := reader{c: c}
	s := settings{
		parser: r.parser(), rollouts: r.flag("collect_rollout_details", false), givenSession: c.Text("session_id"),
		summarise: r.flag("enable_summarize", true), threshold: r.whole("proactive_summarization_threshold", defaultThreshold, 0, 1<<40),
		width: r.whole("tmux_pane_width", defaultWidth, 1, maxPaneSize), height: r.whole("tmux_pane_height", defaultHeight, 1, maxPaneSize),
		storeMessages: r.flag("store_all_messages", false), interleaved: r.flag("interleaved_thinking", false),
		chained: r.flag("use_responses_api", false),
	}
	r.turns(&s)
	r.trajectories(&s)
	if r.given("record_terminal_session") {
		s.record = recordNever
		if r.flag("record_terminal_session", true) {
			s.record = recordAlways
		}
	}
	r.backend()
	request, err := c.Sampling()
	r.fail(err)
	s.request = request
	s.constructor = r.object("llm_kwargs")
	s.request.Extra = r.extra(s.constructor)
	s.request.Tokens, s.request.SessionID, s.request.SendReasoning = s.rollouts, s.givenSession, s.interleaved
	r.object("model_info")
	if api := c.Text("api"); s.chained && api != "" && llm.API(api) != llm.Responses {
		r.failf("use_responses_api is true, and api is %q: leave one of them out", api)
	}
	return s, r.err
}

// modelConfig is the configuration by which the model is opened.
func (s settings) modelConfig(c agent.Config) agent.Config {
	if s.chained {
		c.Settings = c.Settings.Clone()
		c.Settings.Set("api", value.Str(llm.Responses))
	}
	return c
}

// reader reads settings and keeps the first error.
type reader struct {
	c   agent.Config
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) failf(format string, args ...any) {
	r.fail(exception.Errorf(exception.ValueError, "agent "+agentName+": "+format, args...))
}

func (r *reader) given(name string) bool { return !value.IsNull(r.c.Setting(name)) }

func (r *reader) flag(name string, absent bool) bool {
	b, err := r.c.Flag(name, absent)
	r.fail(err)
	return b
}

func (r *reader) whole(name string, absent, least, most int64) int64 {
	n, err := r.c.Whole(name, least, most, absent)
	r.fail(err)
	return n
}

func (r *reader) object(name string) *value.Object {
	v := r.c.Setting(name)
	if value.IsNull(v) {
		return nil
	}
	o, ok := v.(*value.Object)
	if !ok {
		r.failf("setting %s is %s, want a JSON object", name, value.ShortRepr(value.Repr(v)))
	}
	return o
}

func (r *reader) parser() parser {
	name := r.c.Text("parser_name")
	list := parsers()
	if !r.given("parser_name") {
		return list[0]
	}
	for _, p := range list {
		if p.name() == name {
			return p
		}
	}
	r.failf("setting parser_name is %q, want json or xml", name)
	return list[0]
}

// turns reads the limit of turns: the first of its names that is given counts.
func (r *reader) turns(s *settings) {
	s.maxTurns = defaultMaxTurns
	quiet := r.flag("suppress_max_turns_warning", false)
	for _, name := range []string{"max_turns", "max_episodes", "episodes"} {
		if r.given(name) {
			s.maxTurns, s.limited = r.whole(name, defaultMaxTurns, 1, 1<<40), !quiet
			return
		}
	}
}

func (r *reader) trajectories(s *settings) {
	const name = "trajectory_config"
	o := r.object(name)
	if o == nil {
		return
	}
	for key, v := range o.All() {
		on, ok := v.(value.Bool)
		if !ok && !value.IsNull(v) {
			r.failf("%s of setting %s is %s, want true or false", key, name, value.ShortRepr(value.Repr(v)))
		}
		switch key {
		case "raw_content":
			s.rawContent = bool(on)
		case "linear_history":
			s.linear = bool(on)
		default:
			r.failf("setting %s has no %s; it has raw_content and linear_history", name, key)
		}
	}
}

func (r *reader) backend() {
	switch name := r.c.Text("llm_backend"); {
	case !r.given("llm_backend"), name == "litellm":
	case name == "tinker":
		r.failf("llm_backend tinker samples tokens with a library that is not part of this program; leave the setting out, and give a server that speaks one of the protocols as api_base")
	default:
		r.failf("setting llm_backend is %q, want litellm", name)
	}
}

// extra returns what goes into the body of every request; nil for nothing.
func (r *reader) extra(constructor *value.Object) *value.Object {
	merged := value.NewObject(0)
	add := func(setting string, v value.Value) {
		o, ok := v.(*value.Object)
		if !ok {
			r.failf("extra_body of setting %s is %s, want a JSON object", setting, value.ShortRepr(value.Repr(v)))
			return
		}
		for key, member := range o.All() {
			merged.Set(key, member)
		}
	}
	if constructor != nil {
		for key, v := range constructor.All() {
			if key != "extra_body" {
				r.failf("setting llm_kwargs has %s, and only extra_body can be given there; what goes with every request can be a member of llm_call_kwargs", key)
				break
			}
			add("llm_kwargs", v)
		}
	}
	if call := r.object("llm_call_kwargs"); call != nil {
		for key, v := range call.All() {
			if key == "extra_body" {
				add("llm_call_kwargs", v)
				continue
			}
			merged.Set(key, v)
		}
	}
	if merged.Len() == 0 {
		return nil
	}
	return merged
}
