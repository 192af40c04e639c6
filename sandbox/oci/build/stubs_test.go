package build

import (
	"archive/tar"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// namesOf lists what an image has, directories with / at the end.
func namesOf(t testing.TB, img image.Image) []string {
	t.Helper()
	names := []string{}
	err := fs.WalkDir(img.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			name += "/"
		}
		names = append(names, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names[1:]
}

func tarDir(name string, mode int64) tar.Header {
	return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode}
}

func tarFile(name, text string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Uname: text}
}

func tarHard(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeLink, Name: name, Mode: 0o644, Linkname: to}
}

// makeStubs leaves in an upper directory what runtimes make to mount on.
func makeStubs(upper string, base image.Image) error {
	for _, name := range ownDirs {
		info, err := lstat(base.Files(), name)
		if err == nil && info == nil {
			err = os.Mkdir(filepath.Join(upper, name), 0o755)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TestOwnDirs: an image has of the directories that its sandboxes had mounted what steps
// put there, with its attributes, and nothing else.
func TestOwnDirs(t *testing.T) {
	t.Parallel()
	archive := string(archiveOf(t,
		tarDir("dev/", 0o750), tarFile("dev/f", "f"), tarDir("proc/", 0o555), tarDir("x/", 0o755),
	))
	files := map[string]string{"a": "a", "dev/b": "b", "root.tar": archive}
	for name, tt := range map[string]struct {
		instructions string
		want         []string
	}{
		"nothing":          {"COPY a /x/", []string{"x/", "x/a"}},
		"a command":        {"RUN x", []string{}},
		"working dir":      {"WORKDIR /dev/shm/", []string{"dev/", "dev/shm/"}},
		"a directory":      {"COPY dev /dev", []string{"dev/", "dev/b"}},
		"a parent":         {"COPY a /sys/kernel/a", []string{"sys/", "sys/kernel/", "sys/kernel/a"}},
		"an archive":       {"ADD root.tar /", []string{"dev/", "dev/f", "proc/", "x/"}},
		"command on files": {"COPY dev /dev\nRUN x", []string{"dev/", "dev/b"}},
		"twice":            {"COPY dev /dev\nCOPY a /dev/\nCOPY a /", []string{"a", "dev/", "dev/a", "dev/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.stubs = true
			img, err := b.do("FROM scratch\n"+tt.instructions+"\n", files)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, namesOf(t, img)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOwnDirsKept: what is written into a directory that an image has and its sandboxes
// have mounted leaves the directory's mode alone, unless it is the directory itself.
func TestOwnDirsKept(t *testing.T) {
	t.Parallel()
	archive := string(archiveOf(t, tarDir("dev/", 0o711), tarFile("dev/f", "f"), tarHard("dev/h", "dev/f")))
	for instruction, want := range map[string][]string{
		"COPY a /dev/":    {".proctor-aside/dev/ 1750", ".proctor-aside/dev/a 644"},
		"ADD root.tar /":  {".proctor-aside/dev/ 711", ".proctor-aside/dev/f 644", ".proctor-aside/dev/h 644 = .proctor-aside/dev/f"},
		"COPY a /device/": {"device/ 755", "device/a 644"},
		"COPY a /x/dev/a": {"x/ 755", "x/dev/ 755", "x/dev/a 644"},
		"WORKDIR /proc/x": {".proctor-aside/proc/ 755", ".proctor-aside/proc/x/ 755"},
		"COPY a b /tmp/work/": {
			".proctor-aside/tmp/ 755", ".proctor-aside/tmp/work/ 700", ".proctor-aside/tmp/work/a 644", ".proctor-aside/tmp/work/b 644",
		},
		"COPY a /dev/../s/": {"s/ 755", "s/a 644"},
	} {
		b := newBench(t)
		base := b.addImage("base", image.Config{}, map[string]string{"dev/": "", "tmp/work/": ""})
		if err := errors.Join(
			os.Chmod(filepath.Join(base.Layers[0].Dir, "dev"), 0o750|fs.ModeSticky),
			os.Chmod(filepath.Join(base.Layers[0].Dir, "tmp/work"), 0o700),
		); err != nil {
			t.Fatal(err)
		}
		if _, err := b.do("FROM base\n"+instruction+"\n", map[string]string{"a": "", "b": "", "root.tar": archive}); err != nil {
			t.Errorf("%s: %v", instruction, err)
		}
		var got []string
		for _, p := range b.placed {
			name, rest, _ := strings.Cut(p, " ")
			mode, rest, _ := strings.Cut(rest, " ")
			_, rest, linked := strings.Cut(rest, " = ")
			got = append(got, name+" "+mode)
			if linked {
				got[len(got)-1] += " = " + rest
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: placed %q, want %q", instruction, got, want)
		}
	}
}
