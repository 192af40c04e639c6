package cube_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/internal/democube"
)

type none struct{}

// declarations has a Go declaration for each signature of the vectors.
var declarations = map[string]func() cube.Declaration{
	"str-required": func() cube.Declaration {
		return cube.Func("f1", "Say hi.", func(context.Context, struct {
			Name string `json:"name"`
		}) (any, error) {
			return nil, nil
		})
	},
	"types": func() cube.Declaration {
		return cube.Func("f2", "Many types.", func(context.Context, struct {
			A int          `json:"a" desc:"The a."`
			B float64      `json:"b" desc:"The b." default:"1.0"`
			C bool         `json:"c" default:"false"`
			D []string     `json:"d" default:"[]"`
			E *cube.Object `json:"e" default:"{}"`
			G []cube.Value `json:"g" default:"[]"`
		}) (any, error) {
			return nil, nil
		})
	},
	"optional": func() cube.Declaration {
		return cube.Func("f3", "Optional.", func(context.Context, struct {
			A *int   `json:"a"`
			B string `json:"b" default:"x"`
		}) (any, error) {
			return nil, nil
		})
	},
	"optional-no-default": func() cube.Declaration {
		return cube.Func("f4", "Doc.", func(context.Context, struct {
			A *int `json:"a" cube:"required"`
		}) (any, error) {
			return nil, nil
		})
	},
	"union": func() cube.Declaration {
		return cube.Func("f5", "Doc.", func(context.Context, struct {
			A cube.Value `json:"a" type:"int | str" default:"1"`
		}) (any, error) {
			return nil, nil
		})
	},
	"optional-bad-default": func() cube.Declaration {
		return cube.Func("f6", "Doc.", func(context.Context, struct {
			A *int `json:"a" default:"3"`
		}) (any, error) {
			return nil, nil
		})
	},
	"untyped": func() cube.Declaration {
		return cube.Func("f7", "First line.\n\nSecond paragraph.", func(context.Context, struct {
			A cube.Value `json:"a"`
		}) (any, error) {
			return nil, nil
		})
	},
	"no-doc": func() cube.Declaration {
		return cube.Func("f8", "", func(context.Context, struct {
			A string `json:"a"`
		}) (any, error) {
			return nil, nil
		})
	},
	"unknown-types": func() cube.Declaration {
		return cube.Func("f9", "Unknown types.", func(context.Context, struct {
			A cube.Value `json:"a" type:"Custom"`
			B cube.Value `json:"b" type:"tuple" default:"[]"`
		}) (any, error) {
			return nil, nil
		})
	},
	"enum-from-doc": func() cube.Declaration {
		return cube.Func("f10", "Pick.", func(context.Context, struct {
			Mode string `json:"mode" desc:"The mode." type:"{'fast', 'slow'}"`
		}) (any, error) {
			return nil, nil
		})
	},
	"doc-type-overrides": func() cube.Declaration {
		return cube.Func("f11", "Doc types win.", func(context.Context, struct {
			X int    `json:"x" desc:"text." type:"str"`
			Y string `json:"y" desc:"number." type:"int, optional" default:"2"`
		}) (any, error) {
			return nil, nil
		})
	},
}

func TestFunctionSchemaVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "function_schema.json", func(t *testing.T, c vcase) {
		declare, ok := declarations[c.id()]
		if !ok {
			t.Skip("no Go declaration of this signature")
		}
		schema, err := declare().Schema()
		if c.has("error") {
			checkError(t, c.id(), err, c.obj("error"))
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		sameJSON(t, "schema", cube.Pairs("name", schema.Name, "description", schema.Description, "parameters", schema.Parameters), c.value("schema"))
	})
}

func textFunc(name, text string) cube.Declaration {
	return cube.Func(name, "An action.", func(context.Context, none) (any, error) { return text, nil })
}

func demoTools(t *testing.T) map[string]cube.Tool {
	t.Helper()
	demo, err := democube.NewTool("Hello")
	if err != nil {
		t.Fatal(err)
	}
	t2, err := cube.NewActionTool("T2", textFunc("other", "o"), textFunc("blank", ""))
	if err != nil {
		t.Fatal(err)
	}
	t3, err := cube.NewActionTool("T3", textFunc("greet", "hi"))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]cube.Tool{"DemoTool": demo, "T2": t2, "T3": t3}
}

// toolFrom reads "DemoTool" or "Toolbox[DemoTool, T2]".
func toolFrom(t *testing.T, spec string) (cube.Tool, error) {
	t.Helper()
	tools := demoTools(t)
	inner, ok := strings.CutPrefix(spec, "Toolbox[")
	if !ok {
		return tools[spec], nil
	}
	var list []cube.Tool
	for name := range strings.SplitSeq(strings.TrimSuffix(inner, "]"), ", ") {
		list = append(list, tools[name])
	}
	return cube.NewToolbox(list...)
}

func TestToolExecuteVectors(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	eachCase(t, "tool_execute.json", func(t *testing.T, c vcase) {
		tool, err := toolFrom(t, c.str("tool"))
		if c.has("construct_raises") {
			checkError(t, c.id(), err, c.obj("construct_raises"))
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.has("action_names") {
			names := []string{}
			for _, a := range tool.Actions() {
				names = append(names, a.Name)
			}
			if diff := cmp.Diff(c.strs("action_names"), names); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			return
		}
		action, err := cube.FromValue[*cube.Action](reg, c.value("action"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := tool.Execute(t.Context(), *action)
		if c.has("raises") {
			checkError(t, c.id(), err, c.obj("raises"))
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Err != nil {
			if r.Err.StackTrace == "" || !strings.HasSuffix(r.Err.StackTrace, "\n") {
				t.Errorf("stack trace %q", r.Err.StackTrace)
			}
			r.Err.StackTrace = "<trace>"
			sameTyped(t, r.Err, c.value("result"))
			return
		}
		sameTyped(t, r.Obs, c.value("result"))
	})
}

func sameTyped(t *testing.T, got cube.Typed, want cube.Value) {
	t.Helper()
	dump, err := cube.Dump(got)
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, got.TypeName(), dump, want)
}
