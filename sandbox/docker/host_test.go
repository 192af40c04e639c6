package docker_test

import (
	"net/http"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

// TestHost: the engine tells of its machine, also where that is another one.
func TestHost(t *testing.T) {
	t.Parallel()
	engine, b := newFake(t)
	if _, err := b.Host(t.Context()); err == nil {
		t.Error("no error where the engine does not tell")
	}
	engine.set("GET /info", answer(http.StatusOK, `{"NCPU": 6, "MemTotal": 8589934592}`))
	if got, err := b.Host(t.Context()); err != nil || got != (sandbox.Host{CPUs: 6, MemoryMiB: 8192}) {
		t.Errorf("%+v, %v", got, err)
	}
}
