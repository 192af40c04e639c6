package need

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestEngineImage: an image that is there needs no pull; one that is not is
// pulled once; why it cannot be had is said.
func TestEngineImage(t *testing.T) {
	t.Parallel()
	pull := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, text)
		}
	}
	for _, c := range []struct {
		name, image string
		pull        http.HandlerFunc
		pulls       int32
		err         string
	}{
		{name: "there", image: "there:1", pull: pull(500, ""), pulls: 0},
		{name: "pulled", image: "library/absent:1", pull: pull(200, `{"status":"Pulling"}{"status":"Done"}`), pulls: 1},
		{name: "refused", image: "absent:1", pull: pull(404, `{"message":"manifest unknown"}`), pulls: 1, err: "manifest unknown"},
		{name: "breaks off", image: "absent:1", pull: pull(200, `{"status":"Pulling"}{"error":"no route to host"}`), pulls: 1, err: "no route to host"},
		{name: "cut", image: "absent:1", pull: pull(200, `{"status":`), pulls: 1, err: "unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var pulls atomic.Int32
			mux := http.NewServeMux()
			mux.HandleFunc("GET /images/there:1/json", func(http.ResponseWriter, *http.Request) {})
			mux.HandleFunc("POST /images/create", func(w http.ResponseWriter, r *http.Request) {
				if got := r.FormValue("fromImage"); got != c.image {
					t.Errorf("pulls %q, want %q", got, c.image)
				}
				pulls.Add(1)
				c.pull(w, r)
			})
			server := httptest.NewServer(mux)
			defer server.Close()
			host := strings.Replace(server.URL, "http", "tcp", 1)
			for range 2 {
				err := EngineImage(host, c.image)
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want an error with %q", err, c.err)
				}
			}
			if got := pulls.Load(); got != c.pulls {
				t.Errorf("%d pulls, want %d", got, c.pulls)
			}
		})
	}
	if err := EngineImage("ssh://elsewhere", "a"); err == nil {
		t.Error("an engine behind ssh is asked")
	}
}
