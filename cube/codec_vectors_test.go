package cube_test

import (
	"image"
	"image/color"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/value"
)

func TestTypedRoundtripVectors(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	eachCase(t, "typed_roundtrip.json", func(t *testing.T, c vcase) {
		source := c.value("input")
		if source == nil {
			source = c.value("construct")
		}
		v, err := reg.LoadAs(c.str("declared"), []byte(compact(source)))
		if err != nil {
			t.Fatal(err)
		}
		if v.TypeName() != c.str("loaded_type") {
			t.Errorf("loaded %s, want %s", v.TypeName(), c.str("loaded_type"))
		}
		want := c.str("dump")
		if c.flag("reference_lossy") {
			want = c.str("full_dump")
		}
		if diff := cmp.Diff(want, marshal(t, v)); diff != "" {
			t.Errorf("dump (-want +got):\n%s", diff)
		}
		if c.has("loaded_probe") {
			probe(t, v, c.obj("loaded_probe"))
		}
		reload(t, reg, c)
	})
}

func probe(t *testing.T, v cube.Typed, p vcase) {
	t.Helper()
	dump, err := cube.Dump(v)
	if err != nil {
		t.Fatal(err)
	}
	at := cube.Value(dump)
	for step := range strings.SplitSeq(p.str("path"), ".") {
		switch x := at.(type) {
		case *cube.Object:
			at, _ = x.Get(step)
		case cube.List:
			i, err := strconv.Atoi(step)
			if err != nil {
				t.Fatal(err)
			}
			at = x[i]
		}
	}
	sameJSON(t, "probe "+p.str("path"), at, p.value("value"))
}

// reload reads what the reference writes.
func reload(t *testing.T, reg *cube.Registry, c vcase) {
	t.Helper()
	v, err := reg.LoadAs(c.str("declared"), []byte(c.str("dump")))
	if err != nil {
		t.Fatalf("loading the reference's text: %v", err)
	}
	if want := c.str("reload_type"); want != "" && v.TypeName() != want {
		t.Errorf("reloaded %s, want %s", v.TypeName(), want)
	}
	if !c.flag("redump_equal") || c.flag("reference_lossy") {
		return
	}
	if diff := cmp.Diff(c.str("dump"), marshal(t, v)); diff != "" {
		t.Errorf("second dump (-want +got):\n%s", diff)
	}
}

func TestTypedErrorVectors(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	eachCase(t, "typed_errors.json", func(t *testing.T, c vcase) {
		_, err := reg.LoadAs(c.str("declared"), []byte(compact(c.value("input"))))
		checkError(t, c.id(), err, c.obj("error"))
	})
}

func TestJSONTextVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "json_text.json", func(t *testing.T, c vcase) {
		v := c.value("value")
		box := cube.Action{Name: "a", Arguments: cube.Pairs("v", v)}
		got := strings.TrimSuffix(strings.TrimPrefix(marshal(t, &box), `{"id":null,"name":"a","arguments":{"v":`), `},"_type":"cube.core.Action"}`)
		if got != c.str("compact") && (!c.has("compact_also_accepted") || got != c.str("compact_also_accepted")) {
			t.Errorf("compact %s, want %s", got, c.str("compact"))
		}
		structured := cube.Structure([]any{v})
		oneLine, err := structured.ModelContent()
		if err != nil {
			t.Fatal(err)
		}
		if want := "[" + c.str("dumps") + "]"; string(oneLine.(cube.Str)) != want {
			t.Errorf("dumps %s, want %s", oneLine, want)
		}
		if got := string(value.AppendDumps(nil, v, value.DumpsOptions{Indent: 2})); got != c.str("dumps_indent2") {
			t.Errorf("indented dumps %s, want %s", got, c.str("dumps_indent2"))
		}
	})
}

func TestImageVectors(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	eachCase(t, "images.json", func(t *testing.T, c vcase) {
		content := &cube.ImageContent{}
		if c.has("input") {
			var err error
			content, err = cube.FromValue[*cube.ImageContent](reg, c.value("input"))
			if c.has("error") {
				checkError(t, c.id(), err, c.obj("error"))
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			in, _ := c.obj("input").Get("data")
			if url, _ := content.Data.URL(); cube.Str(url) != in {
				t.Errorf("the data of a loaded image changed")
			}
		} else {
			content.Name = new("shot")
			content.Data = cube.NewImage(imageOf(c.obj("pixels")))
		}
		checkPixels(t, content.Data.Pixels(), c.obj("pixels"))
		again, err := cube.Load[*cube.ImageContent](reg, []byte(marshal(t, content)))
		if err != nil {
			t.Fatal(err)
		}
		checkPixels(t, again.Data.Pixels(), c.obj("pixels"))
		checkImageText(t, content, c)
	})
}

func checkImageText(t *testing.T, content *cube.ImageContent, c vcase) {
	t.Helper()
	url, err := content.Data.URL()
	if err != nil {
		t.Fatal(err)
	}
	md, err := content.Markdown()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(c.str("markdown"), "<DATA_URL>", url); md != want {
		t.Errorf("markdown %q, want %q", md, want)
	}
	m, err := cube.Message(content)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(compact(c.value("llm_message")), "<DATA_URL>", url); compact(m) != want {
		t.Errorf("message %s, want %s", compact(m), want)
	}
}

func imageOf(p vcase) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, p.num("width"), p.num("height")))
	for i, px := range p.list("rgba") {
		img.SetNRGBA(i%p.num("width"), i/p.num("width"), pixel(px))
	}
	return img
}

func pixel(v cube.Value) color.NRGBA {
	var b [4]uint8
	for i, x := range v.(cube.List) {
		n, _ := x.(cube.Int).Int64()
		b[i] = uint8(n)
	}
	return color.NRGBA{b[0], b[1], b[2], b[3]}
}

func checkPixels(t *testing.T, img image.Image, p vcase) {
	t.Helper()
	if size := img.Bounds().Size(); size.X != p.num("width") || size.Y != p.num("height") {
		t.Fatalf("size %v, want %d × %d", size, p.num("width"), p.num("height"))
	}
	for i, px := range p.list("rgba") {
		x, y := i%p.num("width"), i/p.num("width")
		got := color.NRGBAModel.Convert(img.At(img.Bounds().Min.X+x, img.Bounds().Min.Y+y))
		if got != pixel(px) {
			t.Errorf("pixel %d,%d is %v, want %v", x, y, got, pixel(px))
		}
	}
}

func TestContentRenderVectors(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	eachCase(t, "content_render.json", func(t *testing.T, c vcase) {
		switch {
		case c.has("content"):
			renderContent(t, reg, c)
		case c.has("observation"):
			renderObservation(t, reg, c)
		default:
			mergeObservations(t, c)
		}
	})
}

func renderContent(t *testing.T, reg *cube.Registry, c vcase) {
	content, err := cube.FromValue[cube.Content](reg, c.value("content"))
	if err != nil {
		t.Fatal(err)
	}
	md, err := content.Markdown()
	if c.has("markdown_error") {
		checkError(t, c.id(), err, c.obj("markdown_error"))
	} else if err != nil || md != c.str("markdown") {
		t.Errorf("markdown %q, %v; want %q", md, err, c.str("markdown"))
	}
	m, err := cube.Message(content)
	if c.has("llm_message_error") {
		checkError(t, c.id(), err, c.obj("llm_message_error"))
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "message", m, c.value("llm_message"))
}

func renderObservation(t *testing.T, reg *cube.Registry, c vcase) {
	obs, err := cube.FromValue[*cube.Observation](reg, c.value("observation"))
	if err != nil {
		t.Fatal(err)
	}
	if md, err := obs.Markdown(); err != nil || md != c.str("markdown") {
		t.Errorf("markdown %q, %v; want %q", md, err, c.str("markdown"))
	}
	messages, err := obs.Messages()
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "messages", messages, c.value("llm_messages"))
}

func mergeObservations(t *testing.T, c vcase) {
	make := func(key string) *cube.Observation {
		o := &cube.Observation{}
		for _, s := range c.strs(key) {
			o.Contents = append(o.Contents, cube.Text(s))
		}
		return o
	}
	texts := func(o *cube.Observation) []string {
		out := []string{}
		for _, content := range o.Contents {
			out = append(out, content.(*cube.TextContent).Data)
		}
		return out
	}
	left, right := make("left"), make("right")
	result := left.Append(right)
	if (result == left) != c.flag("result_is_left") {
		t.Errorf("result is left: %v", result == left)
	}
	if diff := cmp.Diff(c.strs("left_after"), texts(left)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(c.strs("right_after"), texts(right)); diff != "" {
		t.Error(diff)
	}
}

// tuple stands for a type that is no JSON value, under the name it has in Python.
type tuple complex64

func TestFromDataVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "from_data.json", func(t *testing.T, c vcase) {
		var value any = c.value("value")
		switch kind := c.str("value_kind"); {
		case kind == "bytes":
			value = []byte("x")
		case kind == "null":
			value = nil
		case kind == "python tuple":
			value = tuple(0)
		case strings.HasPrefix(kind, "typed model Action"):
			value = &cube.Action{Name: "q"}
		case strings.HasPrefix(kind, "Content object"):
			value = cube.Text("hi")
		}
		content, err := cube.ContentOf(value)
		if c.has("error") {
			checkError(t, c.id(), err, c.obj("error"))
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.obj("kwargs").has("tool_call_id") {
			content.Head().ToolCallID = new(c.obj("kwargs").str("tool_call_id"))
		}
		if c.obj("kwargs").has("name") {
			content.Head().Name = new(c.obj("kwargs").str("name"))
		}
		if got := marshal(t, content); got != compact(c.value("content")) {
			t.Errorf("content %s, want %s", got, compact(c.value("content")))
		}
	})
}

func TestToolCallVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "openai_tool_call.json", func(t *testing.T, c vcase) {
		a, err := cube.ActionFromToolCall(c.obj("tool_call").Object)
		if c.has("error") {
			checkError(t, c.id(), err, c.obj("error"))
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := marshal(t, &a); got != compact(c.value("action")) {
			t.Errorf("action %s, want %s", got, compact(c.value("action")))
		}
	})
}

func TestParamDescriptionVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "param_descriptions.json", func(t *testing.T, c vcase) {
		s := cube.ActionSchema{Name: "n", Description: "d", Parameters: c.obj("parameters").Object}
		err := s.CheckDescriptions()
		if (err == nil) != c.flag("ok") || err != nil && err.Error() != c.str("message") {
			t.Errorf("check: %v, want ok %v %q", err, c.flag("ok"), c.str("message"))
		}
		sameJSON(t, "descriptor", s.ToolDescriptor(), c.value("as_dict"))
	})
}
