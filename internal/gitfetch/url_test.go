package gitfetch_test

import (
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/gitfetch"
)

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url   string
		local bool
		want  gitfetch.Protocol
		err   string
	}{
		{"https://github.com/o/r.git", false, gitfetch.HTTPS, ""},
		{"HTTPS://github.com/o/r.git", false, gitfetch.HTTPS, ""},
		{"ssh://git@github.com:22/o/r.git", false, gitfetch.SSH, ""},
		{"git@github.com:o/r.git", false, gitfetch.SSH, ""},
		{"github.com:o/r.git", false, gitfetch.SSH, ""},
		{"file:///srv/r.git", true, gitfetch.File, ""},
		{"/srv/r.git", true, gitfetch.File, ""},
		{"./r.git", true, gitfetch.File, ""},
		{"file:///srv/r.git", false, "", "on this machine"},
		{"/srv/r.git", false, "", "on this machine"},
		{"", true, "", "empty"},
		{"--upload-pack=touch x", true, "", "hyphen"},
		{"-oProxyCommand=x:y", true, "", "hyphen"},
		{"ssh://-oProxyCommand=x/y", true, "", "hyphen"},
		{"ssh://git@-oProxyCommand=x/y", true, "", "hyphen"},
		{"git@-oProxyCommand=x:y", true, "", "hyphen"},
		{"ext::sh -c touch% x", true, "", "helper program"},
		{"fd::7", true, "", "helper program"},
		{"http://github.com/o/r.git", true, "", "not encrypted"},
		{"git://github.com/o/r.git", true, "", "not encrypted"},
		{"ftp://github.com/o/r.git", true, "", "not spoken"},
		{"https:///o/r.git", true, "", "names no host"},
		{"https://github.com/o/r.git\nx", true, "", "control characters"},
	} {
		got, err := gitfetch.CheckURL(c.url, c.local)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("CheckURL(%q, %v) = %q, %v; want %q, %q", c.url, c.local, got, err, c.want, c.err)
		}
	}
}

func TestAnonymous(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"https://me:secret@h/o/r.git", "https://h/o/r.git"},
		{"https://token@h/o@r.git", "https://h/o@r.git"},
		{"https://h/o/r.git", "https://h/o/r.git"},
		{"git@h:o/r.git", "git@h:o/r.git"},
		{"/srv/a@b", "/srv/a@b"},
	} {
		if got := gitfetch.Anonymous(c[0]); got != c[1] {
			t.Errorf("Anonymous(%q) = %q, want %q", c[0], got, c[1])
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{"https://h/x", "git@h:x", "ext::x", "-x", "ssh://-x/y", "file:///x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, url string) {
		p, err := gitfetch.CheckURL(url, false)
		if err != nil {
			return
		}
		if p != gitfetch.HTTPS && p != gitfetch.SSH {
			t.Errorf("%q is reached by %q", url, p)
		}
		if strings.HasPrefix(url, "-") || strings.ContainsAny(url, "\x00\n\r") {
			t.Errorf("%q is accepted", url)
		}
	})
}

func TestCheckCommit(t *testing.T) {
	t.Parallel()
	for _, ok := range []string{"main", "v1.0", "HEAD", "refs/heads/x", strings.Repeat("a", 40)} {
		if err := gitfetch.CheckCommit(ok); err != nil {
			t.Errorf("CheckCommit(%q) = %v", ok, err)
		}
	}
	for _, bad := range []string{"", "-x", "a b", "a..b", "a:b", "+a", "a^", "a@{1}", "a\nb", "refs/*"} {
		if gitfetch.CheckCommit(bad) == nil {
			t.Errorf("CheckCommit(%q) has no error", bad)
		}
	}
}
