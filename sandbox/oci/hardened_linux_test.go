package oci

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

// What an image has in the place of a directory that stays writable decides nothing
// outside of the sandbox.
func TestHardenedLinksLeadNowhere(t *testing.T) {
	t.Parallel()
	store, ref := imageStore(t)
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "file"), []byte("of the host\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	dockerfile := "FROM " + ref + "\nRUN rm -rf /logs /home /work && ln -s " + host + " /logs && ln -s ../../../../.." + host + " /home && ln -s " + host + " /work\nWORKDIR /work\n"
	build := &sandbox.Build{ContextDir: contextDir(t, map[string]string{"Dockerfile": dockerfile}), Name: "links"}
	for _, name := range runtimeNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, name)
			opts := testOptions(t, name)
			opts.OwnRoot, opts.Images, opts.Hardened = false, store, true
			spec := sandbox.Spec{Image: sandbox.Image{Build: build}}
			if b := newBackend(t, opts); name == RuntimeCrun { // it mounts at no link that leads nowhere
				if sb, err := b.Create(t.Context(), spec); err == nil {
					t.Errorf("it is made: %v", sb.Destroy(cleanupContext(t)))
				}
			} else if got := say(t, create(t, b, spec), "for d in /logs /home /work; do echo x >$d/written && ls $d; done"); strings.Contains(got, "file") {
				t.Errorf("files of the host are seen:\n%s", got)
			}
			left, err := os.ReadDir(host)
			if err != nil || len(left) != 1 {
				t.Errorf("the host's directory was written to: %v, %v", left, err)
			}
		})
	}
}

// A place that has to be writable and is no directory is an error that says so.
func TestHardenedNeedsDirectories(t *testing.T) {
	t.Parallel()
	store, ref := imageStore(t)
	for _, name := range []string{RuntimeGVisor, RuntimeNative} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, name)
			opts := testOptions(t, name)
			opts.OwnRoot, opts.Images = false, store
			spec := sandbox.Spec{Name: t.Name(), Image: sandbox.Image{Ref: ref}, Workdir: "/etc/passwd", Hardened: true}
			sb, err := newBackend(t, opts).Create(t.Context(), spec)
			if err == nil {
				err = sb.Destroy(cleanupContext(t))
				t.Fatalf("it is made: %v", err)
			}
			if want := `keeping "/etc/passwd" writable: `; !strings.Contains(err.Error(), want) {
				t.Errorf("got %q, want %q in it", err, want)
			}
		})
	}
}
