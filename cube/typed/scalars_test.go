package typed_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

type scalars struct {
	Bool   bool    `json:"bool" default:"false"`
	Int    int     `json:"int" default:"0"`
	Small  int8    `json:"small" default:"0"`
	Uint   uint64  `json:"uint" default:"0"`
	Float  float64 `json:"float" default:"0.0"`
	String string  `json:"string" default:""`
	Mode   string  `json:"mode" default:"a" enum:"a,b,c"`
	List   []int   `json:"list" default:"[]"`
	Pair   [2]int  `json:"pair" default:"[0,0]"`

	Map    typed.Map[int] `json:"map" default:"{}"`
	Object *value.Object  `json:"object" default:"{}"`
	Null   *int           `json:"null"`
}

func (*scalars) TypeName() string { return "test.Scalars" }

// TestReadingIsThatOfSchema reads inputs as fields and with the decoders of
// package schema: both accept the same and say the same.
func TestReadingIsThatOfSchema(t *testing.T) {
	t.Parallel()
	reg := typed.NewRegistry(nil)
	if err := reg.Add(&scalars{}); err != nil {
		t.Fatal(err)
	}
	decoders := map[string]func(value.Value) (any, error){
		"bool":   with(schema.Bool),
		"int":    with(schema.SmallInt),
		"small":  with(schema.SizedInt(8)),
		"uint":   with(schema.SizedUint(64)),
		"float":  with(schema.Float),
		"string": with(schema.Str),
		"mode":   with(schema.Literal("a", "b", "c")),
		"list":   with(schema.List(schema.SmallInt)),
		"map":    with(schema.Dict(schema.SmallInt)),
		"object": with(schema.Object),
		"null":   with(schema.Nullable(schema.SmallInt)),
	}
	inputs := []string{
		"null", "true", "false", "0", "1", "2", "-1", "127", "128", "-129", "9223372036854775808", "18446744073709551616",
		"1" + strings.Repeat("0", 400), "0.0", "1.0", "1.5", "-0.0", "1e300", "1e400", "-1e400", "NaN",
		`""`, `" "`, `"a"`, `"d"`, `"on"`, `"OFF"`, `"T"`, `"1"`, `" 1 "`, `"1.0"`, `"1_000"`, `"+01"`, `"1.5"`, `"1e3"`, `"nan"`, `"inf"`, `"0x10"`, `"\ud800"`,
		"[]", "[1]", "[1,\"x\"]", "{}", `{"k":1}`, `{"k":"x"}`,
	}
	for name, decode := range decoders {
		for _, text := range inputs {
			in, err := value.DecodeText(text)
			if err != nil {
				t.Fatal(err)
			}
			_, wantErr := decode(in)
			_, err = typed.FromValue[*scalars](reg, typed.Pairs(name, in))
			compareErrors(t, name+" of "+text, name, err, wantErr)
		}
	}
}

// with runs a decoder in the words of JSON.
func with[T any](d schema.Decoder[T]) func(value.Value) (any, error) {
	return func(v value.Value) (any, error) {
		out, _, err := schema.ValidateJSON(v, d)
		return out, err
	}
}

func compareErrors(t *testing.T, what, field string, got, want error) {
	t.Helper()
	var gots, wants []string
	if e, ok := errors.AsType[*typed.ValidationError](got); ok {
		for _, f := range e.Errors {
			gots = append(gots, fmt.Sprintf("%s: %s: %s", f.Loc, f.Type, f.Msg))
		}
	}
	if e, ok := errors.AsType[*schema.Errors](want); ok {
		for _, f := range e.List {
			loc := append(schema.Location{field}, f.Loc...)
			wants = append(wants, fmt.Sprintf("%s: %s: %s", loc, f.Type, f.Msg))
		}
	}
	if (got == nil) != (want == nil) {
		t.Errorf("%s: %v, schema: %v", what, got, want)
	}
	if diff := cmp.Diff(wants, gots); diff != "" {
		t.Errorf("%s: (-schema +typed):\n%s", what, diff)
	}
}

func TestScalarsAreRead(t *testing.T) {
	t.Parallel()
	reg := typed.NewRegistry(nil)
	if err := reg.Add(&scalars{}); err != nil {
		t.Fatal(err)
	}
	doc := `{"bool":"Yes","int":" 5 ","small":-128.0,"uint":18446744073709551615,"float":"1_0.5","string":"é",` +
		`"mode":"c","list":["1",true],"pair":[1,2],"map":{"z":1,"a":"2"},"object":{"x":[1.0]},"null":"7"}`
	got, err := typed.Load[*scalars](reg, []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	text, err := typed.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"bool":true,"int":5,"small":-128,"uint":18446744073709551615,"float":10.5,"string":"é","mode":"c",` +
		`"list":[1,1],"pair":[1,2],"map":{"z":1,"a":2},"object":{"x":[1.0]},"null":7,"_type":"test.Scalars"}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWordsOfJSON has messages whose words depend on where a document came from.
func TestWordsOfJSON(t *testing.T) {
	t.Parallel()
	reg := typed.NewRegistry(nil)
	if err := reg.Add(&scalars{}); err != nil {
		t.Fatal(err)
	}
	_, err := typed.Load[*scalars](reg, []byte(`{"list":{},"pair":[1],"map":[],"object":[]}`))
	want := `reading test.Scalars: 4 errors
  list: Input should be a valid array
  pair: Input should have 2 items, not 1
  map: Input should be an object
  object: Input should be an object`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if _, err = typed.Load[*scalars](reg, []byte(`[]`)); err == nil || err.Error() != "reading test.Scalars: Input should be an object" {
		t.Errorf("got %v", err)
	}
}

// holder is a plain struct that leads back to itself through a map.
type holder struct {
	Inner typed.Map[holder] `json:"inner" default:"{}"`
}

type holding struct {
	Held holder `json:"held" cube:"optional"`
}

func (*holding) TypeName() string { return "test.Holding" }

func TestMapsOfTheirOwnStructAreRefused(t *testing.T) {
	t.Parallel()
	err := typed.NewRegistry(nil).Add(&holding{})
	if err == nil || !strings.Contains(err.Error(), "typed_test.holder contains itself") {
		t.Errorf("got %v", err)
	}
}
