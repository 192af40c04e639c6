package view

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/internal/jobtest"
)

// TestBeside: a file of a trial is held beside the same of another attempt, and of nothing
// else.
func TestBeside(t *testing.T) {
	t.Parallel()
	dir := jobs(t)
	const name, odd = "artifacts/answer.txt", "<script>fetch('/beacon')</script>"
	attempts := jobtest.Glob(t, filepath.Join(dir, "mixed-oracle", "third__*"))
	text := strings.Repeat("same\n", 20)
	jobtest.Write(t, filepath.Join(attempts[0], name), []byte("first\n"+text+odd+"\n"))
	jobtest.Write(t, filepath.Join(attempts[1], name), []byte("first, changed\n"+text))
	jobtest.Write(t, filepath.Join(attempts[1], "artifacts", "zeros"), make([]byte, 9))
	jobtest.Write(t, filepath.Join(attempts[0], "artifacts", "zeros"), make([]byte, 8))
	other := jobtest.Glob(t, filepath.Join(dir, "mixed-oracle", "tenth__*"))[0]
	jobtest.Write(t, filepath.Join(other, name), []byte("another task"))
	if err := os.Symlink("third", filepath.Join(dir, "mixed-oracle", "link")); err != nil {
		t.Fatal(err)
	}
	server := serve(t, Options{Dirs: []string{dir}})
	at := func(trial, name string) string {
		return server.URL + "/jobs/0/mixed-oracle/trials/" + filepath.Base(trial) + "/files/" + name
	}
	page, _ := get(t, at(attempts[0], name), http.StatusOK)
	if !strings.Contains(page, "?with="+filepath.Base(attempts[1])+`"`) || strings.Contains(page, filepath.Base(other)+`"`) {
		t.Errorf("the other attempts are not offered: %s", page)
	}
	page, _ = get(t, at(attempts[0], name)+"?with="+filepath.Base(attempts[1]), http.StatusOK)
	for _, want := range []string{
		`class="removed"><i></i>-first, changed`, `class="added"><i>1</i>&#43;first`, `class="added"><i>22</i>&#43;&lt;script&gt;`, "2 lines more, 1 line less", `class="hunk"><i></i>…`, `aria-current="true"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in %s", want, page)
		}
	}
	if n := strings.Count(page, " same\n"); n != 2*aroundChange {
		t.Errorf("%d equal lines are shown", n)
	}
	if page, _ = get(t, at(attempts[0], name)+"?with="+filepath.Base(attempts[0]), http.StatusOK); !strings.Contains(page, "The same as in") {
		t.Error("no difference is not said")
	}
	if page, _ = get(t, at(attempts[0], "artifacts/zeros")+"?with="+filepath.Base(attempts[1]), http.StatusOK); !strings.Contains(page, "This is no text") {
		t.Error("what is no text is compared")
	}
	for _, none := range []string{"..", "link", "nowhere", ".hidden", "a%2Fb", filepath.Base(jobtest.Glob(t, filepath.Join(dir, "mixed-oracle", "write-*"))[0])} {
		get(t, at(attempts[0], name)+"?with="+none, http.StatusNotFound)
	}
	jobtest.Write(t, filepath.Join(attempts[0], "artifacts", "fix.patch"), []byte("--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same\n"))
	page, _ = get(t, at(attempts[0], "artifacts/fix.patch"), http.StatusOK)
	for _, want := range []string{`class="removed"><i>4</i>-old`, `class="added"><i>5</i>&#43;new`, `class="hunk"><i>3</i>@@`, `<span><i>6</i> same`} {
		if !strings.Contains(page, want) {
			t.Errorf("the patch has no %q", want)
		}
	}
}

// TestDifference: what is shown is what is new and, without that, what was there.
func TestDifference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "+d", "-e", "", " f"}), 0, 30)
		old, now := lines.Draw(t, "old"), lines.Draw(t, "now")
		whole := func(l []string) string { return strings.Join(append(l[:len(l):len(l)], ""), "\n") }
		var p filePage
		if err := p.difference(whole(old), whole(now)); err != nil {
			t.Fatal(err)
		}
		if same := whole(old) == whole(now); same != (len(p.Lines) == 0) || len(now)-len(old) != p.Added-p.Removed {
			t.Fatalf("%d lines more and %d less of %q and %q", p.Added, p.Removed, old, now)
		}
		added := 0
		for _, l := range p.Lines {
			switch {
			case l.Style == styleHunk || l.Style == styleRemoved:
			case l.N < 1 || l.N > len(now) || l.Text[1:] != now[l.N-1]:
				t.Fatalf("line %d is %q in %q", l.N, l.Text, now)
			case l.Style == styleAdded:
				added++
			}
		}
		if added != p.Added {
			t.Fatalf("%d lines are shown as new of %d", added, p.Added)
		}
	})
}
