package view

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/jobtest"
)

// TestSearch: all parts of a long file are searched, in capitals or not.
func TestSearch(t *testing.T) {
	t.Parallel()
	dir := jobs(t)
	const file = "/jobs/0/mixed-oracle/trials/no-reward__Ct8qpvf/files/agent/long.txt"
	text := []byte(strings.Repeat("nothing is here\n", 5*sliceSize/16))
	copy(text[100*16:], "A NEEDLE is in..\n")
	copy(text[3*sliceSize+160:], "a needle is in..\n")
	copy(text[3*sliceSize+320:], "a needle is in..\n")
	jobtest.Write(t, filepath.Join(dir, "mixed-oracle", "no-reward__Ct8qpvf", "agent", "long.txt"), text)
	server := serve(t, Options{Dirs: []string{dir}})
	page, _ := get(t, server.URL+file+"?q=Needle&at="+fmt.Sprint(sliceSize), http.StatusOK)
	for _, want := range []string{
		"0 lines in this part", fmt.Sprintf(`href="%s?at=0&amp;q=Needle">0 B: 1 line</a>`, file),
		fmt.Sprintf(`href="%s?at=%d&amp;q=Needle">768.0 KiB: 2 lines</a>`, file, 3*sliceSize),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Count(page, " line</a>")+strings.Count(page, " lines</a>") != 2 {
		t.Error("other parts have it, too")
	}
	if page, _ = get(t, server.URL+file+"?q=nowhere", http.StatusOK); strings.Contains(page, "Parts with it") {
		t.Error("what is nowhere is found")
	}
}
