package view

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/jobtest"
)

// TestCompareReward: jobs whose trials have several rewards are compared by one of them.
func TestCompareReward(t *testing.T) {
	t.Parallel()
	dir := jobs(t)
	slower := filepath.Join(dir, "slower")
	if err := os.CopyFS(slower, os.DirFS(filepath.Join(dir, "multi-oracle"))); err != nil {
		t.Fatal(err)
	}
	for _, result := range jobtest.Glob(t, filepath.Join(slower, "*", "result.json")) {
		jobtest.Write(t, result, []byte(strings.ReplaceAll(jobtest.Read(t, result), `"speed": 0.7`, `"speed": 0.2`)))
	}
	server := serve(t, Options{Dirs: []string{dir}})
	const pair = "/compare?a=0/multi-oracle&b=0/slower"
	for at, want := range map[string][]string{
		pair:                   {`aria-current="true">correctness</a>`, ">speed</a>", ", by correctness", ">&#43;0.000</span>"},
		pair + "&reward=speed": {`aria-current="true">speed</a>`, ", by speed", ">-0.250</span>"}, // 0.7 and 0.2, over two tasks
		"/compare?job=0/multi-oracle&job=0/slower&job=0/mixed-nop&reward=speed": {`aria-current="true">speed</a>`, ">-0.250</a>", "reward=speed", "they have no task in common"},
	} {
		page, _ := get(t, server.URL+at, http.StatusOK)
		for _, w := range want {
			if !strings.Contains(page, w) {
				t.Errorf("%s: no %q in %s", at, w, page)
			}
		}
	}
	if page, _ := get(t, server.URL+pair+"&reward=nothing", http.StatusBadRequest); !strings.Contains(page, "its rewards are: correctness, speed") {
		t.Errorf("a reward that is none: %s", page)
	}
	if page, _ := get(t, server.URL+"/compare?a=0/mixed-nop&b=0/mixed-oracle", http.StatusOK); strings.Contains(page, "reward=") {
		t.Error("one is chosen where there is one")
	}
}
