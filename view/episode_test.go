package view

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/jobtest"
)

const episodeAt = "/jobs/0/mixed-oracle/trials/no-reward__Ct8qpvf/episode"

// played puts an episode of 250 turns into a trial. The first one's observation has a
// picture; the second is hostile, the third was too long, the fourth is no turn.
func played(t testing.TB, dir string) (picture []byte) {
	t.Helper()
	var buf bytes.Buffer
	if err := png.Encode(&buf, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, `{"action":{"id":null,"name":"click","arguments":{"at":[1,2],"why":"to see"},"_type":"cube.core.Action"},"output":{"obs":{"contents":[`+
		`{"name":null,"data":"It is clicked.","_type":"cube.core.TextContent"},{"name":"the screen","data":"data:image/png;base64,%s","_type":"cube.core.ImageContent"},`+
		`{"data":{"left":3},"_type":"cube.core.StructuredContent"}]},"reward":0.25,"done":false,"truncated":false,"info":{"found":"it","profiling":{"evaluate":0.1}},"error":null}}`+"\n",
		base64.StdEncoding.EncodeToString(buf.Bytes()))
	fmt.Fprintf(&text, `{"action":{"name":%[1]q,"arguments":{%[1]q:%[1]q}},"actions":[{"name":"a","arguments":{}},{"name":"b"}],"output":{"obs":{"contents":[{"data":%[1]q}]},`+
		`"error":{"error_type":"ValueError","exception_str":%[1]q,"stack_trace":""}},"error":%[1]q}`+"\n", "<script>fetch('/beacon')</script>")
	text.WriteString(`{"action":null,"output":null,"omitted_bytes":9999}` + "\n[1]\n")
	for i := 5; i <= 250; i++ {
		fmt.Fprintf(&text, `{"action":{"name":"go","arguments":{}},"output":{"obs":{"contents":[{"data":"place %d"}]},"reward":1.0,"done":%v}}`+"\n", i, i == 250)
	}
	trial := filepath.Join(dir, "mixed-oracle", "no-reward__Ct8qpvf")
	jobtest.Write(t, filepath.Join(trial, filepath.FromSlash(episodeFile)), []byte(text.String()))
	jobtest.Write(t, filepath.Join(trial, "proctor.json"), []byte(`{"schema":"proctor-trial-v1","attempt":1,"errors":[],"sealed_verifier":false,"episode":{"steps":250,"max_steps":250,"end":"max_steps","truncated":true}}`))
	return buf.Bytes()
}

// TestEpisode: what was done in an episode, and what came of it, is read turn by turn.
func TestEpisode(t *testing.T) {
	t.Parallel()
	dir := jobs(t)
	picture := played(t, dir)
	server := serve(t, Options{Dirs: []string{dir}})
	trial, _ := get(t, server.URL+strings.TrimSuffix(episodeAt, "/episode"), http.StatusOK)
	for _, want := range []string{`href="` + episodeAt + `"`, "250 steps of at most 250, which was the limit"} {
		if !strings.Contains(trial, want) {
			t.Errorf("the trial has no %q", want)
		}
	}
	page, _ := get(t, server.URL+episodeAt, http.StatusOK)
	for _, want := range []string{
		"250 turns", "It is clicked.", "reward 0.25", "click", "to see", episodeAt + `/1-1.png"`, "&#34;left&#34;: 3", "&#34;found&#34;: &#34;it&#34;",
		"Left out: 9999 bytes", "ValueError: &lt;script&gt;", ">[1]<", "place 100<", `from=101"`, `id="step-100"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, bad := range []string{"profiling", "<script>fetch", "place 101<"} {
		if strings.Contains(page, bad) {
			t.Errorf("it has %q", bad)
		}
	}
	for _, last := range []string{"?from=151", "?from=9999"} {
		if page, _ = get(t, server.URL+episodeAt+last, http.StatusOK); !strings.Contains(page, "place 250<") || !strings.Contains(page, "place 151<") || !strings.Contains(page, "· done") {
			t.Errorf("%s is not the end", last)
		}
	}
	data, header := get(t, server.URL+episodeAt+"/1-1.png", http.StatusOK)
	if data != string(picture) || header.Get("Content-Type") != "image/png" {
		t.Errorf("the picture is %d bytes of %s", len(data), header.Get("Content-Type"))
	}
	for _, none := range []string{"/1-0.png", "/1-7.png", "/2-0.png", "/4-0.png", "/999-0.png", "/x.png", "/01-1.png", "/1-1.pngx", "/-1-1.png"} {
		get(t, server.URL+episodeAt+none, http.StatusNotFound)
	}
	get(t, server.URL+episodeAt+"?from=x", http.StatusBadRequest)
	get(t, server.URL+"/jobs/0/mixed-oracle/trials/third__WkgWCSs/episode", http.StatusNotFound)
}

// FuzzTurn: a page can be made of any line.
func FuzzTurn(f *testing.F) {
	f.Add([]byte(`{"action":{"name":"a","arguments":{"b":1}},"output":{"obs":{"contents":[{"data":"c"}]},"reward":1,"done":true,"info":{"d":1},"error":null},"error":"e"}`))
	f.Add([]byte(`{"actions":[1,{"name":2}],"output":{"obs":{"contents":{}}}}`))
	f.Add([]byte("[\xff"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if s := turnOf(1, line, "/here"); s.ID != 1 || len(s.Calls)+len(s.Results)+len(s.Message) > len(line)+1 {
			t.Errorf("got %+v", s)
		}
		for content := range 3 {
			if data, ok := pictureIn([][]byte{line}, content); ok && http.DetectContentType(data) != "image/png" {
				t.Errorf("it is no picture: %q", data)
			}
		}
	})
}
