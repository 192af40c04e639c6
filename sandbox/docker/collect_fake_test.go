package docker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/procid"
)

func TestFakeCollect(t *testing.T) {
	t.Parallel()
	f, b := newFake(t)
	owner := procid.ID{BootID: "b", PID: 1, StartTicks: 2}
	f.set("GET /images/json", answer(200, `[]`))
	f.set("GET /containers/json", answer(200, fmt.Sprintf(`[
		{"Id":"c1","Names":["/one"],"Labels":{"proctor.owner":%q,"proctor.trial":"t1"}},
		{"Id":"c2","Names":["/two"],"Labels":{"proctor.owner":"b:9:9"}},
		{"Id":"c3","Names":["/three"],"Labels":{"proctor.owner":"nonsense"}},
		{"Id":"c4","Labels":{"proctor.owner":%q}}]`, owner, owner)))
	f.set("DELETE /containers/c4", answer(500, `{"message":"busy"}`))
	lines, err := b.Collect(t.Context(), func(o procid.ID) bool { return o != owner })
	if len(lines) != 1 || !strings.Contains(lines[0], "one") || !strings.Contains(lines[0], `"t1"`) {
		t.Errorf("got %q, want one line for the first container", lines)
	}
	if err == nil || !strings.Contains(err.Error(), "c4") {
		t.Errorf("got error %v, want one for the last container", err)
	}
	if f.called("DELETE /containers/c2")+f.called("DELETE /containers/c3") != 0 {
		t.Error("what is claimed, or cannot be told, was removed")
	}
	f.set("GET /containers/json", answer(500, `{"message":"broken"}`))
	if _, err := b.Collect(t.Context(), func(procid.ID) bool { return true }); err == nil {
		t.Error("no list: no error")
	}
}

// TestFakeCollectWhenOwnersEnd: an owner that ends while things are collected is
// seen alive by some looks and dead by the others. What its containers use is
// not removed before they are.
func TestFakeCollectWhenOwnersEnd(t *testing.T) {
	t.Parallel()
	for alive := range 6 {
		f, b := newFake(t)
		labels := `"Labels":{"proctor.owner":"b:1:2","proctor.trial":"t"}`
		f.set("GET /containers/json", answer(200, `[{"Id":"c","Names":["/c"],`+labels+`}]`))
		f.set("GET /networks", answer(200, `[{"Id":"n","Name":"n",`+labels+`}]`))
		f.set("GET /volumes", answer(200, `{"Volumes":[{"Name":"v",`+labels+`}]}`))
		f.set("GET /images/json", answer(200, `[]`))
		for _, call := range []string{"DELETE /containers/c", "DELETE /networks/n", "DELETE /volumes/v"} {
			f.set(call, answer(204, ""))
		}
		looks := 0
		lines, err := b.Collect(t.Context(), func(procid.ID) bool { looks++; return looks <= alive })
		if err != nil {
			t.Errorf("alive for %d looks: %v", alive, err)
		}
		if len(lines) > 0 && !strings.HasPrefix(lines[0], "container") {
			t.Errorf("alive for %d looks: removed %q, and the container is left", alive, lines)
		}
	}
}

// collectImage is an engine after Collect, of which all that is left is an image that
// proctor built: when it was made is in the list of images, the rest in what inspecting it
// tells.
func collectImage(t *testing.T, made time.Time, inspect string) *fakeEngine {
	t.Helper()
	f, b := newFake(t)
	f.set("GET /containers/json", answer(200, `[]`))
	f.set("GET /networks", answer(200, `[]`))
	f.set("GET /volumes", answer(200, `{}`))
	f.set("GET /images/json", answer(200, fmt.Sprintf(`[{"Id":"sha256:2","RepoTags":["proctor-build:x"],"Created":%d}]`, made.Unix())))
	f.set("GET /images/proctor-build:x/json", answer(200, inspect))
	f.set("DELETE /images/proctor-build:x", answer(200, `[]`))
	if _, err := b.Collect(t.Context(), func(procid.ID) bool { return true }); err != nil {
		t.Error(err)
	}
	return f
}

// TestFakeCollectImages: an image goes when nobody has tagged it for long. One
// without the time of a tag was made just now, or is old.
func TestFakeCollectImages(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Format(time.RFC3339Nano)
	for name, tt := range map[string]struct {
		inspect string
		goes    bool
	}{
		"tagged now":            {`{"Created":"2020-01-01T00:00:00Z","Metadata":{"LastTagTime":"` + now + `"}}`, false},
		"tagged long ago":       {`{"Created":"` + now + `","Metadata":{"LastTagTime":"2020-01-01T00:00:00Z"}}`, true},
		"just made":             {`{"Created":"` + now + `","Metadata":{"LastTagTime":"0001-01-01T00:00:00Z"}}`, false},
		"made long ago":         {`{"Created":"2020-01-01T00:00:00Z","Metadata":{"LastTagTime":"0001-01-01T00:00:00Z"}}`, true},
		"made nobody says when": {`{"Metadata":{}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := collectImage(t, time.Unix(0, 0), tt.inspect)
			if went := f.called("DELETE /images/proctor-build:x") == 1; went != tt.goes {
				t.Errorf("removed: %t, want %t", went, tt.goes)
			}
		})
	}
}

// TestFakeCollectNewImages: nothing is asked about an image that is newer than any
// that would be removed.
func TestFakeCollectNewImages(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for age, asked := range map[time.Duration]int{day: 0, 8 * day: 1, -8 * day: 1} {
		f := collectImage(t, time.Now().Add(-age), `{"Metadata":{"LastTagTime":"`+time.Now().UTC().Format(time.RFC3339Nano)+`"}}`)
		if n := f.called("GET /images/proctor-build:x/json"); n != asked {
			t.Errorf("made %v ago: asked %d times, want %d", age, n, asked)
		}
	}
}
