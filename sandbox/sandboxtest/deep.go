package sandboxtest

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

// deepLevels is deeper than anything real.
const deepLevels = 400

// deepTree moves a tree into the sandbox and out of it again.
func deepTree(t *testing.T, s *suite) {
	sb, dir := s.shared(t), s.dir()
	var stream bytes.Buffer
	tw := tar.NewWriter(&stream)
	deepest := strings.Repeat("d/", deepLevels-1) + "d"
	for n := range deepLevels {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: deepest[:2*n+1] + "/", Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: deepest + "/f", Mode: 0o644}), tw.Close()); err != nil {
		t.Fatal(err)
	}
	upload(t, sb, dir, stream.Bytes())
	host, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = host.Close() }()
	if err := sandbox.DownloadDir(call(t), sb, dir, host, sandbox.DefaultDownloadLimits); err != nil {
		t.Fatalf("downloading: %v", err)
	}
	if _, err := host.Lstat(filepath.FromSlash(deepest + "/f")); err != nil {
		t.Fatalf("what is deepest did not arrive: %v", err)
	}
}

// tooDeepTree is one whose end no name reaches: it is made in two parts.
func tooDeepTree(t *testing.T, s *suite) {
	sb, dir := s.shared(t), s.dir()
	half := strings.Repeat(strings.Repeat("n", 200)+"/", 15)
	tree := pack(t, map[string]entry{half + "f": file(0o644, "")})
	upload(t, sb, dir, tree)
	upload(t, sb, dir+"/"+half, tree)
	host, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = host.Close() }()
	err = sandbox.DownloadDir(call(t), sb, dir, host, sandbox.DefaultDownloadLimits)
	if err == nil || !strings.Contains(err.Error(), "nested too deeply") || !strings.Contains(err.Error(), "nnn") {
		t.Errorf("got error %v, want one that says that it is nested too deeply, and where", err)
	}
	mark(t, sb) // the sandbox still answers
}
