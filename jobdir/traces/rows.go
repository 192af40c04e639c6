package traces

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/value"
)

// Limits of what is read of one trial.
const (
	maxTrajectory = 512 << 20
	maxOutput     = 64 << 20
	maxChain      = 1000
)

// mainFile is where a trial's trajectory begins.
const mainFile = "trajectory.json"

// mainSource is what rows of the main trajectory come from.
const mainSource = "main"

// readTrajectory reads a file of the agent's directory. The error is
// [fs.ErrNotExist] where there is none, or where its name leads elsewhere.
func (t *trial) readTrajectory(name string) (*value.Object, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil, fs.ErrNotExist
	}
	data, err := bounded.ReadIn(t.dir, path.Join(agentDir, name), maxTrajectory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	file := filepath.Join(t.dir, agentDir, name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	v, err := value.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	o, ok := v.(*value.Object)
	if !ok {
		return nil, fmt.Errorf("%s is not a trajectory", file)
	}
	return o, nil
}

// follow visits the main trajectory and those that continue it.
func (t *trial) follow(visit func(name string, doc *value.Object) error) error {
	seen := map[string]bool{}
	for name := mainFile; name != "" && !seen[name] && len(seen) < maxChain; {
		seen[name] = true
		doc, err := t.readTrajectory(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(name, doc); err != nil {
			return err
		}
		if name = text(at(doc, "continued_trajectory_ref")); name != "" {
			name = path.Clean(name)
		}
	}
	return nil
}

func (t *trial) imagesError(name string) error {
	return fmt.Errorf("%s: %w", filepath.Join(t.dir, agentDir, name), ErrImages)
}

// writer makes the rows of a trial.
type writer struct {
	trial
	Options
	extra *value.Object
	do    func(Row) error
	// pending makes the rows, one each, when every file is known to be fit.
	pending []func() error
}

func (w *writer) write() error {
	err := w.main()
	if err == nil && w.Subagents {
		err = w.subagents()
	}
	for i := 0; err == nil && i < len(w.pending); i++ {
		err = w.pending[i]()
	}
	return err
}

// main plans the rows of the main trajectory.
func (w *writer) main() error {
	err := w.follow(func(name string, doc *value.Object) error {
		if atif.HasImages(doc) {
			return w.imagesError(name)
		}
		for _, turns := range atif.Conversations(doc, !w.WithoutTools) {
			episode := len(w.pending)
			w.pending = append(w.pending, func() error { return w.row(doc, turns, episode, mainSource) })
		}
		return nil
	})
	if w.Last && len(w.pending) > 1 {
		w.pending = w.pending[len(w.pending)-1:]
	}
	return err
}

// subagents plans a row of each trajectory of a subagent.
func (w *writer) subagents() error {
	for _, name := range w.trajectoryFiles() {
		key, ok := strings.CutPrefix(strings.TrimSuffix(name, ".json"), "trajectory.")
		if !ok || key == "" || strings.Contains(name, ".cont-") {
			continue
		}
		doc, err := w.readTrajectory(name)
		if err != nil {
			return err
		}
		if atif.HasImages(doc) {
			return w.imagesError(name)
		}
		if turns := atif.WholeConversation(doc, !w.WithoutTools); turns != nil {
			w.pending = append(w.pending, func() error { return w.row(doc, turns, 0, key) })
		}
	}
	return nil
}

// trajectoryFiles lists trajectory*.json of the agent's directory, sorted.
func (t *trial) trajectoryFiles() []string {
	root, err := bounded.OpenDir(t.dir)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	paths, _ := fs.Glob(root.FS(), agentDir+"/trajectory*.json")
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = path.Base(p)
	}
	slices.Sort(names)
	return names
}

// row puts one conversation and what is known of the trial together. Subagents
// count as the agent that used them.
func (w *writer) row(doc *value.Object, turns []atif.Turn, episode int, source string) error {
	agent := at(doc, "agent")
	name := text(at(agent, "name"), value.Str(w.agent))
	if source != mainSource {
		name = w.agent
	}
	row := value.NewObject(16)
	row.Set("conversations", turnList(turns, "role", "content", nil))
	row.Set("agent", value.Str(name))
	row.Set("model", value.Str(text(at(agent, "model_name"), value.Str(w.model))))
	row.Set("model_provider", value.Str(w.provider))
	row.Set("date", value.Str(w.date))
	row.Set("task", value.Str(w.task))
	row.Set("episode", value.Str(fmt.Sprintf("episode-%d", episode)))
	row.Set("run_id", value.Str(w.runID))
	row.Set("trial_name", value.Str(w.name))
	if tools, ok := at(agent, "tool_definitions").(value.List); ok && len(tools) > 0 {
		row.Set("tool_definitions", tools)
	}
	row.Set("result", w.outcome)
	for key, v := range w.extra.All() {
		row.Set(key, v)
	}
	if w.ShareGPT {
		row.Set("conversations_sharegpt", turnList(turns, "from", "value", map[string]string{atif.RoleUser: "human", atif.RoleAssistant: "gpt"}))
	}
	if w.TokenIDs {
		setTokens(row, turns)
	}
	if w.Subagents {
		row.Set("trace_source", value.Str(source))
	}
	return w.do(row)
}

func turnList(turns []atif.Turn, role, content string, names map[string]string) value.List {
	list := make(value.List, len(turns))
	for i, turn := range turns {
		name := turn.Role
		if names != nil {
			name = names[name]
		}
		o := value.NewObject(2)
		o.Set(role, value.Str(name))
		o.Set(content, value.Str(turn.Content))
		list[i] = o
	}
	return list
}

// setTokens adds what a provider said of the tokens of each turn of the assistant.
func setTokens(row Row, turns []atif.Turn) {
	for _, c := range []struct {
		key string
		of  func(atif.Turn) value.List
	}{
		{"prompt_token_ids", func(t atif.Turn) value.List { return t.PromptTokenIDs }},
		{"completion_token_ids", func(t atif.Turn) value.List { return t.CompletionTokenIDs }},
		{"logprobs", func(t atif.Turn) value.List { return t.Logprobs }},
	} {
		var column value.List
		some := false
		for _, turn := range turns {
			if turn.Role != atif.RoleAssistant {
				continue
			}
			var entry value.Value = value.Null{}
			if ids := c.of(turn); ids != nil {
				entry, some = ids, true
			}
			column = append(column, entry)
		}
		if some {
			row.Set(c.key, column)
		}
	}
}

// extra are the members that all rows of a trial have when they are asked for.
func (t *trial) extra(o Options) (*value.Object, error) {
	extra := &value.Object{}
	if o.Instruction {
		s, err := t.instruction()
		if err != nil {
			return nil, err
		}
		extra.Set("instruction", s)
	}
	if o.VerifierOutput {
		extra.Set("verifier_output", t.verifierOutput())
	}
	return extra, nil
}

// instruction is the first message that is not blank of the trajectory whose name
// is first.
func (t *trial) instruction() (value.Value, error) {
	for _, name := range t.trajectoryFiles() {
		if strings.Contains(name, ".summarization") {
			continue
		}
		doc, err := t.readTrajectory(name)
		if err != nil {
			return nil, err
		}
		steps, _ := at(doc, "steps").(value.List)
		for _, s := range steps {
			if m, ok := at(s, "message").(value.Str); ok && value.Strip(string(m)) != "" {
				return m, nil
			}
		}
		break
	}
	return value.Null{}, nil
}

// verifierOutput is what the tests printed, null when that was not kept.
func (t *trial) verifierOutput() value.Value {
	var out strings.Builder
	found := false
	for _, name := range []string{"test-stdout.txt", "test-stderr.txt"} {
		data, err := bounded.ReadIn(t.dir, "verifier/"+name, maxOutput)
		if err == nil {
			found = true
			out.WriteString(strings.ToValidUTF8(string(data), "\ufffd"))
		}
	}
	if !found {
		return value.Null{}
	}
	return value.Str(out.String())
}
