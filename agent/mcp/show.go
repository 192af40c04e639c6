package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/value"
)

// maxText bounds the texts of one answer, in bytes.
const maxText = 256 << 10

// What is said of a task that has ended.
const (
	stopped   = "Task finished by the agent."
	hasEnded  = "The task has ended."
	taskEnded = "The task has ended: no more actions are possible."
)

// contentsOf is an observation as clients are shown it: at least one content, and texts
// of about maxText altogether, of which the first take what they need.
func contentsOf(obs *cube.Observation) []sdk.Content {
	if obs == nil {
		obs = &cube.Observation{}
	}
	var shown []sdk.Content
	room, leftOut := maxText, 0
	for _, c := range obs.Contents {
		text, png := cube.Shown(c)
		switch {
		case strings.TrimSpace(text) == "":
		case room <= 0:
			leftOut++
		default:
			text, _ = bounded.Shorten(text, room)
			room -= len(text)
			shown = append(shown, &sdk.TextContent{Text: text})
		}
		if png != nil {
			shown = append(shown, &sdk.ImageContent{Data: png, MIMEType: "image/png"})
		}
	}
	if leftOut > 0 {
		shown = append(shown, &sdk.TextContent{Text: fmt.Sprintf("[%d texts are left out here]", leftOut)})
	}
	if len(shown) == 0 {
		shown = []sdk.Content{&sdk.TextContent{Text: "(no result)"}}
	}
	return shown
}

func result(contents []sdk.Content) answer {
	return answer{result: &sdk.CallToolResult{Content: contents}}
}

func say(text string) answer { return result([]sdk.Content{&sdk.TextContent{Text: text}}) }

// refusal is an answer that says why a call was not done, or failed.
func refusal(text string) answer {
	a := say(text)
	a.result.IsError = true
	return a
}

// lastAnswer is what the call that ended the task is answered with.
func lastAnswer(name string, failed *cube.StepError) answer {
	switch {
	case failed != nil:
		text, _ := bounded.Shorten(bounded.Clean(failed.ErrorType+": "+failed.ExceptionStr), maxText)
		return refusal(text)
	case name == cube.StopName:
		return say(stopped)
	}
	return say(hasEnded)
}

// Instruction is the text of an observation, for agents that take text only: its
// contents with blank lines between, "" where there is none. Images are returned as the
// data of PNG files, in order, and the text names the i-th of them, counted from 0, as
// path(i). A content that cannot be shown is a text that says so. A nil path is one where
// images have no names.
func Instruction(obs *cube.Observation, path func(i int) string) (text string, images [][]byte) {
	if obs == nil {
		return "", nil
	}
	var parts []string
	for _, c := range obs.Contents {
		text, png := cube.Shown(c)
		if strings.TrimSpace(text) != "" {
			parts = append(parts, text)
		}
		if png == nil {
			continue
		}
		mark := "[an image]"
		if path != nil {
			mark = "[image: " + path(len(images)) + "]"
		}
		parts, images = append(parts, mark), append(images, png)
	}
	return strings.Join(parts, "\n\n"), images
}

// instructionsOf is the first observation as the server's instructions.
func instructionsOf(obs *cube.Observation) string {
	text, _ := Instruction(obs, func(i int) string { return fmt.Sprintf("number %d of the prompt %q", i+1, promptName) })
	text, _ = bounded.Shorten(text, maxText)
	return text
}

// promptOf is the first observation as messages of the user: one for each content, as the
// protocol has it.
func promptOf(contents []sdk.Content) []*sdk.PromptMessage {
	messages := make([]*sdk.PromptMessage, len(contents))
	for i, c := range contents {
		messages[i] = &sdk.PromptMessage{Role: "user", Content: c}
	}
	return messages
}

// toolsOf are actions as clients are shown them, in their order.
func toolsOf(actions []cube.ActionSchema) []*sdk.Tool {
	tools := make([]*sdk.Tool, len(actions))
	for i, a := range actions {
		tools[i] = &sdk.Tool{Name: bounded.Clean(a.Name), Description: bounded.Clean(a.Description), InputSchema: inputSchema(a.Parameters)}
	}
	return tools
}

// anyObject is the schema of arguments of which nothing is known.
const anyObject = `{"type":"object","properties":{}}`

// inputSchema is the schema of an action's arguments. Clients refuse all tools of a
// server where one has a schema that is not of type object.
func inputSchema(parameters *cube.Object) json.RawMessage {
	if parameters.Len() == 0 {
		return json.RawMessage(anyObject)
	}
	schema := cube.Pairs("type", "object")
	for name, v := range parameters.All() {
		if name != "type" {
			schema.Append(name, v)
		}
	}
	if !schema.Has("properties") {
		schema.Set("properties", value.NewObject(0))
	}
	text := value.AppendDumps(nil, schema, value.DumpsOptions{ItemSeparator: ",", KeySeparator: ":"})
	if !json.Valid(text) { // it has a number that JSON has not
		return json.RawMessage(anyObject)
	}
	return text
}

func sameTools(a, b []*sdk.Tool) bool {
	return slices.EqualFunc(a, b, func(a, b *sdk.Tool) bool {
		return a.Name == b.Name && a.Description == b.Description &&
			bytes.Equal(a.InputSchema.(json.RawMessage), b.InputSchema.(json.RawMessage))
	})
}
