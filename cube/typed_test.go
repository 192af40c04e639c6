package cube_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/internal/democube"
	"github.com/proctor-run/proctor/cube/typed"
)

func TestErrorsNameTheJSONPath(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	cases := map[string]struct {
		text string
		want string
	}{
		"nested field":   {`{"_type":"demo_cube.defs.DemoTaskConfig","metadata":{"id":5}}`, "metadata.id: Input should be a valid string"},
		"nested type":    {`{"_type":"demo_cube.defs.DemoTaskConfig","metadata":{"id":"t"},"tool_config":{"_type":"cube.core.Action"}}`, "tool_config: Value error, Cannot deserialize 'cube.core.Action': class must be a subclass of 'ToolConfig'."},
		"list item":      {`{"_type":"demo_cube.defs.DemoTaskConfig","metadata":{"id":"t","tags":["a",1]}}`, "metadata.tags.1: Input should be a valid string"},
		"narrowed":       {`{"_type":"demo_cube.defs.DemoTaskConfig","metadata":{"id":"t","_type":"cube.task.TaskMetadata"}}`, "metadata: Value error, Cannot deserialize 'cube.task.TaskMetadata': class must be a subclass of 'DemoTaskMetadata'."},
		"deep":           {`{"_type":"demo_cube.defs.DemoTaskConfig","metadata":{"id":"t"},"tool_config":{"_type":"cube.tool.ToolboxConfig","tool_configs":[{"_type":"demo_cube.defs.DemoToolConfig"},{"_type":"demo_cube.defs.DemoToolConfig","greeting":null}]}}`, "tool_config.tool_configs.1.greeting: Input should be a valid string"},
		"required null":  {`{"_type":"demo_cube.defs.DemoTaskConfig","metadata":null}`, "metadata: Input should be an object"},
		"huge int":       {`{"_type":"demo_cube.defs.DemoTaskConfig","metadata":{"id":"t"},"seed":99999999999999999999}`, "seed: Input should be a valid integer of at most 64 bits"},
		"wrong choice":   {`{"_type":"demo_cube.defs.DemoTaskConfig","metadata":{"id":"t","split":"x"}}`, "metadata.split: Input should be 'train', 'val' or 'test'"},
		"not even JSON":  {`{`, "Expecting property name enclosed in double quotes"},
		"unknown nested": {`{"_type":"demo_cube.defs.DemoTaskConfig","metadata":{"id":"t","_type":"nope.Nope"}}`, "metadata: Value error, Cannot deserialize 'nope.Nope'"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := cube.Load[cube.TaskConfig](reg, []byte(c.text))
			wantMessage(t, err, c.want)
		})
	}
}

func TestAllErrorsAreReported(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	_, err := cube.Load[cube.TaskConfig](reg, []byte(`{"_type":"demo_cube.defs.DemoTaskConfig","metadata":{"split":"x","weight":"w"},"seed":1.5,"target":[]}`))
	want := `reading cube.task.TaskConfig: 5 errors
  metadata.id: Field required
  metadata.split: Input should be 'train', 'val' or 'test'
  metadata.weight: Input should be a valid number, unable to parse string as a number
  seed: Input should be a valid integer, got a number with a fractional part
  target: Input should be a valid integer`
	if err == nil {
		t.Fatal("no error")
	}
	equal(t, "text", err.Error(), want)
}

func TestUnknownTypeError(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	for _, value := range []string{`"nope.mod.X"`, `"Nope"`, `""`, `5`, `null`, `["a.b"]`} {
		_, err := cube.Load[cube.ToolConfig](reg, []byte(`{"_type":`+value+`}`))
		unknown, ok := errors.AsType[*cube.UnknownTypeError](err)
		if !ok || unknown.Declared != "ToolConfig" {
			t.Errorf("%s: got %v", value, err)
		}
	}
	_, err := cube.Load[cube.ToolConfig](reg, []byte(`{"_type":"a.`+strings.Repeat("x", 1<<20)+`"}`))
	if len(err.Error()) > 1000 {
		t.Errorf("the message has %d bytes", len(err.Error()))
	}
}

func TestSubtypesInBaseSlots(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	demo := &democube.Observation{Note: "n"}
	demo.Contents = []cube.Content{cube.Text("x")}
	out := &cube.EnvironmentOutput{Obs: cube.Upcast[cube.Observation](demo)}
	text := marshal(t, out)
	if !strings.Contains(text, `"note":"n","_type":"demo_cube.defs.DemoObservation"`) {
		t.Fatal(text)
	}
	again, err := cube.Load[*cube.EnvironmentOutput](reg, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "second text", marshal(t, again), text)
	back, ok := cube.Downcast[*democube.Observation](again.Obs)
	if !ok || back.Note != "n" || len(again.Obs.Contents) != 1 {
		t.Errorf("got %+v, %v", back, ok)
	}
	if plain, ok := cube.Downcast[*cube.Observation](&cube.Observation{}); !ok || plain == nil {
		t.Error("a base is itself")
	}
	if _, ok := cube.Downcast[*democube.Observation](&cube.Observation{}); ok {
		t.Error("a base is no subtype")
	}
	// A copy of a base is only that.
	copied := *again.Obs
	if text := marshal(t, &copied); strings.Contains(text, "note") {
		t.Errorf("a copy claims to be the original: %s", text)
	}
	if cube.Upcast[cube.StepError](demo) != nil {
		t.Error("an observation is no step error")
	}
}

func TestLoadPointerToBaseOfSubtype(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	obs, err := cube.Load[*cube.Observation](reg, []byte(`{"_type":"demo_cube.defs.DemoObservation","note":"n"}`))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "text", marshal(t, obs), `{"contents":[],"note":"n","_type":"demo_cube.defs.DemoObservation"}`)
}

type (
	noTypeName struct{ cube.TaskMetadata }
	mapField   struct {
		M map[string]string `json:"m"`
	}
	badDefault struct {
		N int `json:"n" default:"x"`
	}
	taken       struct{}
	withoutDots struct{}
)

func (*mapField) TypeName() string    { return "test_cube.MapField" }
func (*badDefault) TypeName() string  { return "test_cube.BadDefault" }
func (*taken) TypeName() string       { return "cube.core.Action" }
func (*withoutDots) TypeName() string { return "Nope" }

func TestAddRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		proto cube.Typed
		want  string
	}{
		"inherited name": {&noTypeName{}, "has the TypeName of the cube.TaskMetadata it embeds"},
		"map":            {&mapField{}, "use cube.Map[string]"},
		"default":        {&badDefault{}, `default "x" is not JSON`},
		"taken":          {&taken{}, "belongs to cube.Action"},
		"no dot":         {&withoutDots{}, "has no dot"},
	} {
		wantMessage(t, cube.NewRegistry(cube.Options{}).Add(c.proto), c.want)
		if t.Failed() {
			t.Fatal(name)
		}
	}
	reg := cube.NewRegistry(cube.Options{})
	if err := errors.Join(democube.Register(reg, nil), democube.Register(reg, nil)); err != nil {
		t.Errorf("registering twice: %v", err)
	}
}

// Judge is a family of a cube's own.
type judge interface {
	cube.Typed
	Judge() string
}

type strictJudge struct {
	Level int `json:"level" default:"3"`
}

func (*strictJudge) TypeName() string { return "test_cube.StrictJudge" }
func (*strictJudge) Judge() string    { return "no" }

type court struct {
	Judges []judge `json:"judges"`
	Head   judge   `json:"head"`
}

func (*court) TypeName() string { return "test_cube.Court" }

func TestOwnFamily(t *testing.T) {
	t.Parallel()
	reg := cube.NewRegistry(cube.Options{})
	err := errors.Join(cube.AddFamily[judge](reg, "test_cube.Judge"), reg.Add(&strictJudge{}, &court{}))
	if err != nil {
		t.Fatal(err)
	}
	text := `{"judges":[{"level":3,"_type":"test_cube.StrictJudge"}],"head":null,"_type":"test_cube.Court"}`
	c, err := cube.Load[*court](reg, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "text", marshal(t, c), text)
	_, err = cube.Load[*court](reg, []byte(`{"judges":[{}]}`))
	wantMessage(t, err, "judges.0: Value error, Cannot deserialize abstract class 'Judge' directly.")
	_, err = cube.Load[*court](reg, []byte(`{"judges":[null]}`))
	wantMessage(t, err, "judges.0: Input should be an object")
}

func TestDefaultsAreNotShared(t *testing.T) {
	t.Parallel()
	a, b := cube.Default[democube.Seeds](), cube.Default[democube.Seeds]()
	a.List[0] = 99
	equal(t, "other default", b.List, []int64{1, 2})
}

func TestMarshalRefusesSurrogates(t *testing.T) {
	t.Parallel()
	_, err := cube.Marshal(cube.Text("\xed\xa0\x80"))
	wantMessage(t, err, "lone surrogate")
	_, err = cube.Marshal(cube.Structure(cube.Pairs("k", []any{"\xed\xa0\x80"})))
	wantMessage(t, err, "data: k: item 0: text holds a lone surrogate")
}

type ring struct {
	Next *ring `json:"next"`
}

func (*ring) TypeName() string { return "test_cube.Ring" }

func TestCyclesAreErrors(t *testing.T) {
	t.Parallel()
	r := &ring{}
	r.Next = r
	_, err := cube.Marshal(r)
	wantMessage(t, err, "nested too deep")
	type node struct{ Next any }
	n := &node{}
	n.Next = n
	_, err = cube.ValueOf(n)
	wantMessage(t, err, "nested too deep")
}

func TestMarshalIndent(t *testing.T) {
	t.Parallel()
	got, err := typed.MarshalIndent(&cube.Action{Name: "a"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "text", string(got), "{\n  \"id\": null,\n  \"name\": \"a\",\n  \"arguments\": {},\n  \"_type\": \"cube.core.Action\"\n}")
}

func TestValueOf(t *testing.T) {
	t.Parallel()
	type inner struct {
		A int `json:"a"`
		b int
		C string `json:"-"`
		D []*int
	}
	v, err := cube.ValueOf(map[string]any{"z": uint64(1 << 63), "a": inner{A: 1, b: 2, C: "c", D: []*int{nil, new(2)}}, "f": float32(0.5)})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "value", compact(v), `{"a":{"a":1,"D":[null,2]},"f":0.5,"z":9223372036854775808}`)
	for _, bad := range []any{make(chan int), func() {}, map[int]string{1: "a"}, []any{[]byte{1}}, complex(1, 2)} {
		if _, err := cube.ValueOf(bad); cube.ErrorType(err) != "TypeError" {
			t.Errorf("%T: %v", bad, err)
		}
	}
}

func TestPairsPanics(t *testing.T) {
	t.Parallel()
	for _, args := range [][]any{{"a"}, {1, 2}, {"a", make(chan int)}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v: no panic", args)
				}
			}()
			cube.Pairs(args...)
		}()
	}
}

// TestPut: Go values go into an object one by one, and a key keeps its place.
func TestPut(t *testing.T) {
	t.Parallel()
	o := cube.Pairs("first", nil, "second", 2)
	cube.Put(o, "first", []string{"a"})
	cube.Put(o, "third", new(cube.Stop()))
	cube.Put(o, "fourth", cube.Str("a value already"))
	equal(t, "object", compact(o), `{"first":["a"],"second":2,"third":`+marshal(t, new(cube.Stop()))+`,"fourth":"a value already"}`)
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, `key "bad" of an object`) {
			t.Errorf("panic %q, want one with the key", got)
		}
		equal(t, "keys", o.Len(), 4)
	}()
	cube.Put(o, "bad", make(chan int))
}

func TestPresets(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	p, err := cube.NewPresets(reg, map[string]cube.ToolConfig{"loud": &democube.ToolConfig{Greeting: "HELLO"}, "calm": democube.NewToolConfig()})
	if err != nil {
		t.Fatal(err)
	}
	first, err := p.Get("loud")
	if err != nil {
		t.Fatal(err)
	}
	first.(*democube.ToolConfig).Greeting = "changed"
	first.(*democube.ToolConfig).Options.Set("k", cube.Null{})
	second, err := p.Get("loud")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "preset", marshal(t, second), `{"greeting":"HELLO","options":{},"_type":"demo_cube.defs.DemoToolConfig"}`)
	var names []string
	for name := range p.All() {
		names = append(names, name)
	}
	if diff := cmp.Diff([]string{"calm", "loud"}, names); diff != "" {
		t.Error(diff)
	}
}
