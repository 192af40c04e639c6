package cube_test

import (
	"bytes"
	"image"
	"image/png"
	"testing"

	"github.com/proctor-run/proctor/cube"
)

func TestShown(t *testing.T) {
	t.Parallel()
	named := &cube.ImageContent{Data: cube.NewImage(image.NewGray(image.Rect(0, 0, 3, 2)))}
	named.Name = new("Map")
	text, data := cube.Shown(named)
	img, err := png.Decode(bytes.NewReader(data))
	if text != "## Map" || err != nil || img.Bounds().Dx() != 3 {
		t.Errorf("%q, %v, %v", text, img, err)
	}
	for want, c := range map[string]cube.Content{
		"a\uFFFDb":                 cube.Text("a\xffb"),
		`{"a": [1]}`:               cube.Structure(cube.Pairs("a", []int{1})),
		"[an image that is empty]": &cube.ImageContent{},
		"[content of type cube.core.VideoContent, which cannot be shown]": &cube.VideoContent{},
	} {
		if text, data := cube.Shown(c); text != want || data != nil {
			t.Errorf("%T: %q, %d bytes; want %q", c, text, len(data), want)
		}
	}
}

func TestReadArguments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "{}", " \n": "{}", "null": "{}", `{"a": 1}`: "{'a': 1}",
		"[1]": "they are of type list", "{": "they are no JSON", `{"a": NaN}`: "they are no JSON",
	} {
		args, err := cube.ReadArguments(text)
		got := cube.PythonText(args)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestMisfit(t *testing.T) {
	t.Parallel()
	known := cube.Pairs("a", cube.Pairs("type", "string"))
	for _, c := range []struct {
		schema, args *cube.Object
		want         string
	}{
		{nil, cube.Pairs("x", 1), ""},
		{cube.Pairs(), cube.Pairs("x", 1), ""},
		{cube.Pairs("properties", known, "required", []string{"a"}), cube.Pairs("a", 1), ""},
		{cube.Pairs("properties", known, "required", []string{"a"}), cube.Pairs(), `The argument "a" is missing.`},
		{cube.Pairs("properties", known), cube.Pairs("x", 1), `There is no argument "x".`},
		{cube.Pairs("properties", known, "additionalProperties", true), cube.Pairs("x", 1), ""},
		{cube.Pairs("properties", known, "additionalProperties", false), cube.Pairs("x", 1), `There is no argument "x".`},
		{cube.Pairs("properties", known, "additionalProperties", []int{}), cube.Pairs("x", 1), ""},
		{cube.Pairs("properties", known, "patternProperties", cube.Pairs()), cube.Pairs("x", 1), ""},
		{cube.Pairs("properties", 1, "required", 2), cube.Pairs("x", 1), ""},
	} {
		s := cube.ActionSchema{Name: "n", Parameters: c.schema}
		if got := s.Misfit(c.args); got != c.want {
			t.Errorf("%v with %v: %q, want %q", c.args, c.schema, got, c.want)
		}
	}
}
