// Package terminus is the agent terminus-2 (Harbor's agents, section 4): a model that
// works at a terminal. The agent runs on this machine; in the sandbox there is nothing
// of it but a tmux session, into which it types what the model asks for, and whose
// screen it shows to the model.
//
// [Entry] is the agent for a registry. Section numbers in the package refer to the
// description of Harbor's agents.
//
// An episode is one answer of the model and what came of it. Whatever ends a run, its
// trajectory is written and what it used is reported. Everything that a model or a
// sandbox says is bounded and harms nothing but its own trial.
package terminus
