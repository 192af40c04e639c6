package guest

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
)

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		sb, err := bare{}.Create(b.Context(), sandbox.Spec{})
		if err != nil {
			b.Fatal(err)
		}
		if err := sb.Destroy(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExec(b *testing.B) {
	need.Program(b, "bash")
	sb := serve(b, bare{})
	user := fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid())
	b.Run("guest", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			st, err := sb.Exec(b.Context(), sandbox.Command{Shell: "true", User: user, Stdout: io.Discard})
			if err != nil || st.Code != 0 {
				b.Fatal(st, err)
			}
		}
	})
	b.Run("direct", func(b *testing.B) { // what the process alone costs here
		for b.Loop() {
			if out, err := exec.Command("bash", "-c", "true").Output(); err != nil {
				b.Fatal(string(out), err)
			}
		}
	})
}

func BenchmarkOutputOneGiB(b *testing.B) {
	need.Program(b, "bash")
	sb := serve(b, bare{})
	user := fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid())
	b.SetBytes(1 << 30)
	b.ReportAllocs()
	for b.Loop() {
		st, err := sb.Exec(b.Context(), sandbox.Command{
			Argv: []string{"head", "-c", "1073741824", "/dev/zero"}, User: user, Stdout: io.Discard,
		})
		if err != nil || st.Code != 0 {
			b.Fatal(st, err)
		}
	}
}

func BenchmarkUpload256MiB(b *testing.B) {
	sb, dir := serve(b, bare{}), b.TempDir()
	const size = 256 << 20
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		r, w := io.Pipe()
		go func() {
			tw := tar.NewWriter(w)
			err := tw.WriteHeader(&tar.Header{Name: "f", Mode: 0o600, Size: size, Typeflag: tar.TypeReg})
			chunk := make([]byte, 1<<20)
			for n := 0; err == nil && n < size; n += len(chunk) {
				_, err = tw.Write(chunk)
			}
			if err == nil {
				err = tw.Close()
			}
			w.CloseWithError(err)
		}()
		if err := sb.Upload(b.Context(), dir, r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDownload256MiB(b *testing.B) {
	sb, dir := serve(b, bare{}), b.TempDir()
	f, err := os.Create(dir + "/f")
	if err != nil {
		b.Fatal(err)
	}
	const size = 256 << 20
	if err := f.Truncate(size); err != nil {
		b.Fatal(err)
	}
	_ = f.Close()
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if err := sb.Download(b.Context(), dir, io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
