package cube_test

import (
	"context"
	"fmt"

	"github.com/proctor-run/proctor/cube"
)

// A notebook is a tool with two actions.
type notebook struct {
	*cube.ActionTool
	notes []string
}

type noteInput struct {
	Text   string `json:"text" desc:"What to remember."`
	Urgent bool   `json:"urgent" desc:"Whether it goes first." default:"false"`
}

func newNotebook() (*notebook, error) {
	n := &notebook{}
	var err error
	n.ActionTool, err = cube.NewActionTool("Notebook",
		cube.Func("note", "Remember something.", n.note),
		cube.Func("notes", "List what is remembered.", func(context.Context, struct{}) (any, error) {
			return n.notes, nil
		}),
	)
	return n, err
}

func (n *notebook) note(_ context.Context, in noteInput) (any, error) {
	if in.Urgent {
		n.notes = append([]string{in.Text}, n.notes...)
	} else {
		n.notes = append(n.notes, in.Text)
	}
	return nil, nil // the agent sees "Success"
}

// Reset forgets everything.
func (n *notebook) Reset(context.Context) error {
	n.notes = nil
	return nil
}

// A tool is made of typed functions; their JSON schema follows from the types.
func ExampleFunc() {
	ctx := context.Background()
	tool, err := newNotebook()
	if err != nil {
		panic(err)
	}
	for _, a := range tool.Actions() {
		schema, _ := cube.Marshal(&a)
		fmt.Println(string(schema))
	}
	for _, action := range []cube.Action{
		cube.NewAction("note", "text", "buy milk"),
		cube.NewAction("note", "text", "breathe", "urgent", true),
		cube.NewAction("notes"),
		cube.NewAction("note", "txt", "oops"),
	} {
		r, err := tool.Execute(ctx, action)
		switch {
		case err != nil:
			fmt.Println("error:", err)
		case r.Err != nil:
			fmt.Println("failed:", r.Err.ExceptionStr)
		default:
			text, _ := r.Obs.Markdown()
			fmt.Println(text)
		}
	}
	// Output:
	// {"name":"note","description":"Remember something.","parameters":{"type":"object","properties":{"text":{"type":"string","description":"What to remember."},"urgent":{"type":"boolean","description":"Whether it goes first."}},"required":["text"]},"_type":"cube.core.ActionSchema"}
	// {"name":"notes","description":"List what is remembered.","parameters":{"type":"object","properties":{}},"_type":"cube.core.ActionSchema"}
	// Success
	// Success
	// ```json
	// [
	//   "breathe",
	//   "buy milk"
	// ]
	// ```
	// failed: Notebook.note() got an unexpected keyword argument 'txt'
}
