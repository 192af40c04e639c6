package cube_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
)

type point struct {
	X     uint8   `json:"x" desc:"Right."`
	Y     uint16  `json:"y" default:"7"`
	Label *string `json:"label"`
}

type drawInput struct {
	Count  uint    `json:"count" desc:"How many."`
	From   point   `json:"from" desc:"The start."`
	To     *point  `json:"to"`
	Points []point `json:"points" default:"[]"`
	Extra  any     `json:"extra" default:"null"`
}

func drawTool(t *testing.T, got *drawInput) *cube.ActionTool {
	t.Helper()
	tool, err := cube.NewActionTool("Pen", cube.Func("draw", "Draw.", func(_ context.Context, in drawInput) (any, error) {
		*got = in
		return "drawn", nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

const pointSchema = `"properties":{"x":{"type":"integer","description":"Right."},"y":{"type":"integer"},"label":{"type":"string"}},"required":["x"]`

func TestParametersOfStructs(t *testing.T) {
	t.Parallel()
	var got drawInput
	tool := drawTool(t, &got)
	schema, err := cube.Marshal(&tool.Actions()[0])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"draw","description":"Draw.","parameters":{"type":"object","properties":{` +
		`"count":{"type":"integer","description":"How many."},` +
		`"from":{"type":"object","description":"The start.",` + pointSchema + `},` +
		`"to":{"type":"object",` + pointSchema + `},` +
		`"points":{"type":"array","items":{"type":"object",` + pointSchema + `}},` +
		`"extra":{}},"required":["count","from"]},"_type":"cube.core.ActionSchema"}`
	if diff := cmp.Diff(want, string(schema)); diff != "" {
		t.Error(diff)
	}
	r, err := tool.Execute(t.Context(), cube.NewAction("draw", "count", 3,
		"from", cube.Pairs("x", 1, "label", "a"), "to", cube.Pairs("x", 2, "y", 3),
		"points", []any{cube.Pairs("x", 255)}, "extra", cube.Pairs("deep", []any{1, 2.5, "s", nil, true})))
	if err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	label := "a"
	expect := drawInput{
		Count: 3, From: point{1, 7, &label}, To: &point{X: 2, Y: 3}, Points: []point{{X: 255, Y: 7}},
		Extra: map[string]any{"deep": []any{1, 2.5, "s", nil, true}},
	}
	if diff := cmp.Diff(expect, got); diff != "" {
		t.Error(diff)
	}
}

func TestParametersThatDoNotFit(t *testing.T) {
	t.Parallel()
	from := cube.Pairs("x", 1)
	cases := map[string]struct {
		action cube.Action
		want   string
	}{
		"negative":          {cube.NewAction("draw", "count", -1, "from", from), "Pen.draw() argument 'count': Input should be greater than or equal to 0"},
		"too large":         {cube.NewAction("draw", "count", 1, "from", cube.Pairs("x", 256)), "Pen.draw() argument 'from.x': Input should be a valid integer of at most 8 bits"},
		"missing in struct": {cube.NewAction("draw", "count", 1, "from", cube.Pairs()), "Pen.draw() argument 'from.x': Field required"},
		"unknown in struct": {cube.NewAction("draw", "count", 1, "from", cube.Pairs("x", 1, "lable", "a")), "Pen.draw() got an unexpected keyword argument 'from.lable'"},
		"unknown in list":   {cube.NewAction("draw", "count", 1, "from", from, "points", []any{cube.Pairs("x", 1, "z", 2)}), "Pen.draw() got an unexpected keyword argument 'points.0.z'"},
		"not a struct":      {cube.NewAction("draw", "count", 1, "from", "here"), "Pen.draw() argument 'from': Input should be an object"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got drawInput
			r, err := drawTool(t, &got).Execute(t.Context(), c.action)
			if err != nil || r.Err == nil {
				t.Fatalf("got %+v, %v", r, err)
			}
			if r.Err.ErrorType != "TypeError" || r.Err.ExceptionStr != c.want {
				t.Errorf("got %s: %s\nwant %s", r.Err.ErrorType, r.Err.ExceptionStr, c.want)
			}
		})
	}
}

type (
	untaggedInput   struct{ Word string }
	halfTaggedInput struct {
		Word string `json:",omitempty"`
	}
	nestedUntagged struct {
		Inner untaggedInput `json:"inner"`
	}
	leftOut struct {
		Word string `json:"word"`
		Own  int    `json:"-"`
	}
	recursiveInput struct {
		Children []recursiveInput `json:"children"`
	}
)

func declare[In any](name string) cube.Declaration {
	return cube.Func(name, "Do it.", func(context.Context, In) (any, error) { return nil, nil })
}

func TestDeclarationsThatAreRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		d    cube.Declaration
		want string
	}{
		"untagged":        {declare[untaggedInput]("say"), "field Word of cube_test.untaggedInput has no name in a json tag"},
		"tag, no name":    {declare[halfTaggedInput]("say"), "field Word of cube_test.halfTaggedInput has no name in a json tag"},
		"nested untagged": {declare[nestedUntagged]("say"), "field Word of cube_test.untaggedInput has no name in a json tag"},
		"recursive":       {declare[recursiveInput]("say"), "cube_test.recursiveInput contains itself"},
		"not a struct":    {declare[string]("say"), "string is not a struct"},
		"blanks in name":  {declare[none]("a b!\n"), `action name 'a b!\n': names have letters`},
		"empty name":      {declare[none](" "), "must be a non-empty string"},
		"long name":       {declare[none](strings.Repeat("a", 65)), "at most 64"},
		"no description":  {declare[none]("say").Described(" "), "the description of action 'say' is empty"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := cube.NewActionTool("T", c.d)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	for _, d := range []cube.Declaration{declare[leftOut]("say"), declare[none](strings.Repeat("a", 64))} {
		if _, err := d.Schema(); err != nil {
			t.Error(err)
		}
	}
}

func TestWholeDescription(t *testing.T) {
	t.Parallel()
	const text = "Say it.\n\nLoudly, if need be."
	schema, err := cube.Func("say", text, func(context.Context, none) (any, error) { return nil, nil }).Described(text).Schema()
	if err != nil || schema.Description != text {
		t.Errorf("got %q, %v", schema.Description, err)
	}
}
