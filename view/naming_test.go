package view

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/jobtest"
)

// namingTrajectories writes trajectories that name one another: a long one, what continues
// it, a subagent within it and others in files of their own. The long one is
// trajectory.json.
func namingTrajectories(t *testing.T, dir string) {
	t.Helper()
	write := func(name, more string, steps int, named map[int]string) {
		var list []string
		for i := 1; i <= steps; i++ {
			s := fmt.Sprintf(`{"step_id": %d, "source": "agent", "message": "step %d of %s"`, i, i, name)
			if ref := named[i]; ref != "" {
				s += `, "tool_calls": [{"tool_call_id": "c", "function_name": "ask", "arguments": {}}], ` +
					`"observation": {"results": [{"source_call_id": "c", "subagent_trajectory_ref": [` + ref + `]}]}`
			}
			list = append(list, s+"}")
		}
		text := `{"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": [` + strings.Join(list, ",") + "]" + more + "}"
		jobtest.Write(t, filepath.Join(dir, filepath.FromSlash(name)), []byte(text))
	}
	at := func(path string) string { return `{"trajectory_path": "` + path + `"}` }
	const inner = `, "subagent_trajectories": [{"schema_version": "ATIF-v1.7", "trajectory_id": "inner", "agent": {"name": "b", "version": "1"}, "steps": [` +
		`{"step_id": 1, "source": "agent", "message": "within", "observation": {"results": [{"subagent_trajectory_ref": [{"trajectory_path": "deep.json"}]}]}}]}]`
	write("trajectory.json", inner+`, "continued_trajectory_ref": "trajectory.cont-1.json"`, 250, map[int]string{
		3: `{"trajectory_id": "inner"}`, 230: at("sub/one.json") + "," + at("../outside.json") + "," + at("absent.json"),
	})
	write("trajectory.cont-1.json", "", 2, nil)
	write("sub/one.json", "", 2, map[int]string{2: at("../two.json")})
	write("two.json", "", 1, map[int]string{1: at("trajectory.json")})
	write("deep.json", "", 1, nil)
}

// wayBack is the link by which a page says what names it.
var wayBack = regexp.MustCompile(`<p>(It continues|A subagent of) <a class="go" href="([^"#]*)#([^"]*)">([^<]*)</a>`)

// TestWayBack: from a trajectory that another one names, a link leads to the step that
// does.
func TestWayBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	namingTrajectories(t, dir)
	t.Run("files", func(t *testing.T) {
		t.Parallel()
		server := serve(t, Options{Dirs: []string{filepath.Join(dir, "trajectory.json")}})
		leadBack(t, server, "/trajectories/0/trajectory", "")
	})
	t.Run("a trial", func(t *testing.T) {
		t.Parallel()
		jobs := jobs(t)
		namingTrajectories(t, filepath.Join(jobs, "mixed-oracle", "no-reward__Ct8qpvf", "agent"))
		server := serve(t, Options{Dirs: []string{jobs}})
		leadBack(t, server, "/jobs/0/mixed-oracle/trials/no-reward__Ct8qpvf/trajectory", "agent/")
	})
}

// leadBack looks at the trajectories below a directory at an address.
func leadBack(t *testing.T, server *httptest.Server, at, dir string) {
	t.Helper()
	page := func(address string) string {
		text, _ := get(t, server.URL+address, http.StatusOK)
		return text
	}
	for name, want := range map[string]struct{ how, text, by, shows string }{
		"trajectory.cont-1.json": {"It continues", "", "trajectory.json", "step 250 of trajectory.json"},
		"sub/one.json":           {"A subagent of", "step 230 of ", "trajectory.json", "step 230 of trajectory.json"},
		"two.json":               {"A subagent of", "step 2 of ", "sub/one.json", "step 2 of sub/one.json"},
		"deep.json":              {"A subagent of", "step 1 of ", "trajectory.json", "within"},
	} {
		m := wayBack.FindStringSubmatch(page(query(at, "file", dir+name)))
		if m == nil || m[1] != want.how || m[4] != want.text+dir+want.by {
			t.Errorf("%s: got %q", name, m)
			continue
		}
		if _, there, ok := strings.Cut(page(html.UnescapeString(m[2])), ` id="`+m[3]+`"`); !ok || !strings.Contains(before(there, "</li>"), want.shows) {
			t.Errorf("%s: %s has no %s that shows %q", name, m[2], m[3], want.shows)
		}
	}
	first := page(at)
	if wayBack.MatchString(first) {
		t.Error("the first one is said to be named by another one")
	}
	if !strings.Contains(first, `named by <a href="`+query(at, "file", dir+"trajectory.json")+`#step-3">step 3</a>`) {
		t.Error("what names the subagent within is not said")
	}
}

func before(text, end string) string {
	head, _, _ := strings.Cut(text, end)
	return head
}
