package docker

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

func TestContainerName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "Hello World__1", "---", "ünï", strings.Repeat("x", 500), "a/b:c"} {
		got := containerName(name)
		if !strings.HasPrefix(got, "proctor-") || len(got) > 120 || strings.Trim(got, "abcdefghijklmnopqrstuvwxyz0123456789_.-") != "" {
			t.Errorf("%q: got %q", name, got)
		}
		if got == containerName(name) {
			t.Errorf("%q: the same name twice", name)
		}
	}
}

func TestKeyed(t *testing.T) {
	t.Parallel()
	var k keyed
	release, fresh, err := k.hold(t.Context(), "a")
	if err != nil || fresh {
		t.Fatal(fresh, err)
	}
	if other, _, err := k.hold(t.Context(), "b"); err != nil {
		t.Error(err)
	} else {
		other(false)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, _, err := k.hold(ctx, "a"); !errors.Is(err, cause) {
		t.Errorf("got error %v, want the cause", err)
	}
	var wg sync.WaitGroup
	began := make(chan struct{})
	wg.Go(func() {
		close(began)
		release, _, err := k.hold(t.Context(), "a")
		if err != nil {
			t.Error(err)
			return
		}
		release(false)
	})
	<-began
	release(true)
	wg.Wait()
	if len(k.keys) != 0 {
		t.Errorf("%d keys are left", len(k.keys))
	}
}

func TestFollowBuild(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, log, steps, err string }{
		{"classic", `{"stream":"Step 1/2 : FROM x\n"}{"stream":"hello\n"}` + "\n" + `{"aux":{"ID":"sha256:1"}}`, "Step 1/2 : FROM x\nhello\n", "Step 1/2 : FROM x", ""},
		{"a failure", `{"stream":"out\n"}{"errorDetail":{"code":7,"message":"returned a non-zero code: 7"},"error":"x"}`, "out\n", "", "non-zero code: 7"},
		{"a pull", `{"status":"Pulling from x","id":"12"}`, "", "Pulling from x 12", ""},
		{"garbage", `<html>`, "", "", "reading the build's output"},
		{"cut", `{"stream":"a"}{"str`, "a", "", "reading the build's output"},
		{"garbage in a trace", `{"id":"moby.buildkit.trace","aux":"//8="}{"id":"moby.buildkit.trace","aux":12}`, "", "", ""},
	} {
		log := engine.NewTail(1000)
		var steps []string
		err := followBuild(strings.NewReader(tt.in), log, func(s string) { steps = append(steps, s) })
		if log.String() != tt.log || strings.Join(steps, "|") != tt.steps || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: log %q, steps %q, error %v", tt.name, log.String(), steps, err)
		}
	}
}

func TestTraceText(t *testing.T) {
	t.Parallel()
	text := func(b []byte, n protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
	}
	cached := protowire.AppendVarint(protowire.AppendTag(nil, 4, protowire.VarintType), 1)
	started := text(text(cached, vertexName, "[1/2] RUN x"), vertexStarted, "")
	failed := text(text(nil, vertexName, "[2/2] RUN y"), vertexError, "exit code: 7")
	logged := text(nil, logMessage, "output\n")
	trace := text(text(text(nil, responseVertexes, string(started)), responseLogs, string(logged)), responseVertexes, string(failed))
	log := engine.NewTail(1000)
	var steps []string
	traceText(trace, log, func(s string) { steps = append(steps, s) })
	if want := "[1/2] RUN x\noutput\n[2/2] RUN y: exit code: 7\n"; log.String() != want || len(steps) != 1 {
		t.Errorf("got %q, steps %q; want %q", log.String(), steps, want)
	}
}

func FuzzFollowBuild(f *testing.F) {
	f.Add([]byte(`{"id":"moby.buildkit.trace","aux":"CgIKAA=="}{"stream":"x"}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		_ = followBuild(strings.NewReader(string(in)), engine.NewTail(100), func(string) {})
	})
}
