package params_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/proctor-run/proctor/cube/internal/params"
	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/value"
)

type input struct {
	Word  string  `json:"word" desc:"Which."`
	Times int     `json:"times" default:"1"`
	Tone  *string `json:"tone"`
}

func TestRead(t *testing.T) {
	t.Parallel()
	p, err := params.Of(reflect.TypeFor[input]())
	if err != nil {
		t.Fatal(err)
	}
	want := `{'type': 'object', 'properties': {'word': {'type': 'string', 'description': 'Which.'}, 'times': {'type': 'integer'}, ` +
		`'tone': {'type': 'string'}}, 'required': ['word']}`
	if got := value.Repr(p.Schema()); got != want {
		t.Errorf("schema %s\nwant %s", got, want)
	}
	in, err := p.Read("Tool.say()", typed.Pairs("word", "hi"))
	if err != nil {
		t.Fatal(err)
	}
	if got := in.Interface().(input); got.Word != "hi" || got.Times != 1 || got.Tone != nil {
		t.Errorf("read %+v", got)
	}
	for _, tt := range []struct {
		args      *value.Object
		text, why string
	}{
		{nil, "Tool.say() missing 1 required positional argument: 'word'", "missing a required argument: 'word'"},
		{typed.Pairs("word", "hi", "wrod", 1), "Tool.say() got an unexpected keyword argument 'wrod'", "got an unexpected keyword argument 'wrod'"},
		{typed.Pairs("word", "hi", "times", "x"), "Tool.say() argument 'times': Input should be a valid integer, unable to parse string as an integer",
			"argument 'times': Input should be a valid integer, unable to parse string as an integer"},
	} {
		_, err := p.Read("Tool.say()", tt.args)
		mistake, ok := errors.AsType[*params.ArgumentError](err)
		if !ok || mistake.Error() != tt.text || mistake.Why != tt.why {
			t.Errorf("%s: got %v, want %s (%s)", value.Repr(tt.args), err, tt.text, tt.why)
		}
	}
}

func TestDeclarationsThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, in := range []any{
		struct{ Untagged string }{},
		struct {
			A string `json:"a" type:"int | str"`
		}{},
		struct {
			A *int `json:"a" default:"1"`
		}{},
	} {
		if _, err := params.Of(reflect.TypeOf(in)); err == nil {
			t.Errorf("%T is taken", in)
		}
	}
}
