package logs

import (
	"encoding/base64"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/value"
)

// GeminiCLI reads the session of Gemini CLI: the copy that Harbor's agent makes of
// it, or the newest below sessions.
func GeminiCLI(d *Dir, in Input) (*Converted, error) {
	out := &Converted{Style: atif.ASCII, Failure: geminiFailure(d)}
	session, messages := geminiSession(d)
	g := geminiLog{out: out, model: afterLast(in.Model)}
	for _, m := range messages {
		switch text(m, "type") {
		case "user":
			g.user(m)
		case "gemini":
			g.answer(m)
		}
	}
	if len(g.steps) == 0 {
		return out, nil
	}
	final := &atif.FinalMetrics{Steps: stepCount(g.steps)}
	out.InputTokens, out.CachedTokens, out.OutputTokens = &g.input, &g.cached, &g.output
	final.PromptTokens, final.CachedTokens, final.CompletionTokens = &g.input, &g.cached, &g.output
	in.Model = either(in.Model, g.named)
	out.CostUSD = in.cost(g.input, g.cached, g.output)
	model := either(g.named, g.model)
	out.Trajectory = &atif.Trajectory{
		SessionID:    optional(session),
		Agent:        atif.AgentInfo{Name: "gemini-cli", Version: in.version(), ModelName: optional(model)},
		Steps:        number(g.steps),
		FinalMetrics: final,
	}
	return out, nil
}

// geminiFailure is what standard output says of a run that ended in an error.
func geminiFailure(d *Dir) string {
	failure := ""
	for r := range d.Records("gemini-cli.txt") {
		if text(r, "type") == "result" && text(r, "status") == "error" {
			failure = text(r, "error", "message")
		}
	}
	return failure
}

// geminiSession finds the session and reads its messages.
func geminiSession(d *Dir) (id string, messages []*value.Object) {
	if o := d.Document("gemini-cli.trajectory.json"); o != nil {
		return geminiDocument(o)
	}
	name := "gemini-cli.trajectory.jsonl"
	if d.Read(name) == nil {
		name = ""
		d.Walk("sessions", func(file string, isDir bool) {
			base := path.Base(file)
			if !isDir && strings.HasPrefix(base, "session-") && (path.Ext(base) == ".jsonl" || path.Ext(base) == ".json") && base > path.Base(name) {
				name = file
			}
		})
	}
	if path.Ext(name) == ".json" {
		return geminiDocument(d.Document(name))
	}
	return geminiRecords(d.Records(name))
}

func geminiDocument(o *value.Object) (id string, messages []*value.Object) {
	for _, m := range list(o, "messages") {
		if m, ok := m.(*value.Object); ok {
			messages = append(messages, m)
		}
	}
	return text(o, "sessionId"), messages
}

// geminiRecords applies the records of a session: one with the id of another
// replaces it, and a rewind drops a message and what came after it, or everything
// when there is no such message.
func geminiRecords(records iter.Seq[*value.Object]) (id string, messages []*value.Object) {
	places := map[string]int{} // of messages, by their ids
	for r := range records {
		key := text(r, "id")
		place, known := places[key]
		switch {
		case r.Has("$rewindTo"):
			from := places[text(r, "$rewindTo")]
			for _, m := range messages[from:] {
				delete(places, text(m, "id"))
			}
			messages = messages[:from]
		case r.Has("$set"):
			id = either(text(r, "$set", "sessionId"), id)
		case key == "":
			id = either(text(r, "sessionId"), id)
		case known:
			messages[place] = r
		default:
			places[key] = len(messages)
			messages = append(messages, r)
		}
	}
	return id, messages
}

type geminiLog struct {
	out                   *Converted
	steps                 []atif.Step
	model                 string // the configured one
	named                 string // the first that answered
	input, cached, output value.Int
}

// user adds what the user said. Results of tools, which the log repeats as a
// message of the user's, stand with their calls.
func (g *geminiLog) user(m *value.Object) {
	s := geminiText(at(m, "content"))
	if s == "" && !isText(at(m, "content")) {
		return
	}
	g.steps = append(g.steps, atif.Step{Timestamp: timestamp(m, "timestamp"), Source: atif.User, Message: atif.Text(s)})
}

func isText(v value.Value) bool {
	_, ok := v.(value.Str)
	return ok
}

// geminiText is text, or the texts of parts.
func geminiText(v value.Value) string {
	if s, ok := v.(value.Str); ok {
		return string(s)
	}
	var texts []string
	parts, _ := v.(value.List)
	for _, p := range parts {
		if s := text(p, "text"); s != "" {
			texts = append(texts, s)
		}
	}
	return strings.Join(texts, "\n")
}

func (g *geminiLog) answer(m *value.Object) {
	model := text(m, "model")
	g.named = either(g.named, model)
	model = either(model, g.model)
	s := atif.Step{
		Timestamp: timestamp(m, "timestamp"), Source: atif.Agent, ModelName: optional(model),
		Message:          atif.Text(geminiText(at(m, "content"))),
		ReasoningContent: optional(geminiThoughts(list(m, "thoughts"))),
		Metrics:          g.metrics(object(m, "tokens")),
	}
	calls := list(m, "toolCalls")
	if len(calls) > 0 {
		s.Observation = &atif.Observation{}
	}
	for i, call := range calls {
		id := text(call, "id")
		s.ToolCalls = append(s.ToolCalls, atif.ToolCall{ID: id, FunctionName: text(call, "name"), Arguments: object(call, "args")})
		s.Observation.Results = append(s.Observation.Results, atif.Result{
			SourceCallID: &id,
			Content:      g.result(list(call, "result"), fmt.Sprintf("images/step_%d_obs_%d_img_", len(g.steps)+1, i)),
		})
	}
	g.steps = append(g.steps, s)
}

// geminiThoughts leaves out those that are only a subject.
func geminiThoughts(thoughts value.List) string {
	var lines []string
	for _, t := range thoughts {
		subject, description := text(t, "subject"), text(t, "description")
		switch {
		case description == "":
		case subject == "":
			lines = append(lines, description)
		default:
			lines = append(lines, subject+": "+description)
		}
	}
	return strings.Join(lines, "\n")
}

// metrics are the tokens of an answer: what it thought and what tools took is
// output.
func (g *geminiLog) metrics(tokens *value.Object) *atif.Metrics {
	if tokens == nil {
		return nil
	}
	input, cached := count(tokens, "input"), count(tokens, "cached")
	thoughts, tool := count(tokens, "thoughts"), count(tokens, "tool")
	output := count(tokens, "output").Add(thoughts).Add(tool)
	g.input, g.cached, g.output = g.input.Add(input), g.cached.Add(cached), g.output.Add(output)
	extra := value.NewObject(2)
	extra.Set("thoughts_tokens", thoughts)
	extra.Set("tool_tokens", tool)
	return &atif.Metrics{PromptTokens: &input, CachedTokens: &cached, CompletionTokens: &output, Extra: extra}
}

// imageTypes are the images that a trajectory may have, and how their files are
// called.
var imageTypes = map[string]string{"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}

// result is what a tool gave: its text, and images as files whose names begin with
// prefix.
func (g *geminiLog) result(results value.List, prefix string) *atif.Content {
	var parts []atif.Part
	var said strings.Builder
	images := 0
	for _, r := range results {
		response := object(r, "functionResponse", "response")
		switch v := at(response, "output").(type) {
		case value.Str:
			said.WriteString(string(v))
		case nil:
			said.WriteString(text(response, "error"))
		default:
			said.WriteString(dumps(v))
		}
		for _, p := range list(r, "functionResponse", "parts") {
			mime := text(p, "inlineData", "mimeType")
			data, err := base64.StdEncoding.DecodeString(text(p, "inlineData", "data"))
			ext, known := imageTypes[mime]
			if err != nil || !known {
				continue
			}
			file := fmt.Sprintf("%s%d.%s", prefix, images, ext)
			images++
			g.out.Images = append(g.out.Images, Image{Path: file, Data: data})
			parts = append(parts, atif.Part{Type: atif.ImagePart, Source: &atif.ImageSource{MediaType: mime, Path: file}})
		}
	}
	output := said.String()
	switch {
	case parts == nil && len(results) == 0:
		return nil
	case parts == nil:
		return new(atif.Text(output))
	case output != "":
		parts = slices.Insert(parts, 0, atif.Part{Type: atif.TextPart, Text: &output})
	}
	return &atif.Content{Parts: parts}
}
