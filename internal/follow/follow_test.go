package follow_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/follow"
)

// watched is a directory in which a log is followed.
type watched struct {
	t   *testing.T
	dir string
	log follow.Log
	got []string
}

func watch(t *testing.T) *watched { t.Helper(); return &watched{t: t, dir: t.TempDir()} }

func (w *watched) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

func (w *watched) add(name, text string) {
	w.t.Helper()
	f, err := os.OpenFile(w.path(name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) each(line string) error {
	w.got = append(w.got, line)
	return nil
}

// look returns what is new, with | behind each line.
func (w *watched) look(name string, lines int) string {
	w.t.Helper()
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	w.got = nil
	if err := w.log.Look(w.t.Context(), root, name, lines, w.each); err != nil {
		return err.Error()
	}
	return w.said()
}

func (w *watched) said() string {
	if len(w.got) == 0 {
		return ""
	}
	return strings.Join(w.got, "|") + "|"
}

func (w *watched) flush() string {
	w.t.Helper()
	w.got = nil
	if err := w.log.Flush(w.each); err != nil {
		w.t.Fatal(err)
	}
	return w.said()
}

func (w *watched) want(what, got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s: got %.200q, want %.200q", what, got, want)
	}
}

func TestLook(t *testing.T) {
	t.Parallel()
	w := watch(t)
	w.want("no file", w.look("log", follow.All), "")
	for i, step := range []struct{ add, want string }{
		{"", ""}, {"one\ntw", "one|"}, {"o\n", "two|"}, {"", ""}, {"\n\n", "||"},
		{"10%\r20%", "10%|"}, {"\r", "20%|"}, {"\n", ""}, {"\n", "|"}, {"a\r\nb\r\r\nc\n", "a|b|c|"}, {"\r\rd\r", "d|"}, {"e\n", "e|"}, {"last", ""},
	} {
		w.add("log", step.add)
		w.want(fmt.Sprint("step ", i), w.look("log", follow.All), step.want)
	}
	w.want("the rest", w.flush(), "last|")
	w.want("no rest", w.flush(), "")
}

// TestMoved: what has been moved is the same, and what stands at its name is read anew.
func TestMoved(t *testing.T) {
	t.Parallel()
	w := watch(t)
	w.add("log", "one\nhalf")
	w.want("first", w.look("log", follow.All), "one|")
	w.add("log", " way\ntwo\nno end")
	if err := os.Rename(w.path("log"), w.path("old")); err != nil {
		t.Fatal(err)
	}
	w.want("gone", w.look("log", follow.All), "")
	w.want("moved", w.look("old", follow.All), "half way|two|")
	w.add("log", "three\n")
	w.want("another", w.look("log", follow.All), "no end|three|")
	w.want("moved, again", w.look("old", follow.All), "")
	if err := os.Truncate(w.path("log"), 0); err != nil {
		t.Fatal(err)
	}
	w.add("log", "4\n")
	w.want("shorter", w.look("log", follow.All), "4|")
}

func TestLastLines(t *testing.T) {
	t.Parallel()
	for lines, want := range map[int]string{0: "", 1: "c|", 2: "b|c|", 3: "a|b|c|", 1 << 40: "a|b|c|", follow.All: "a|b|c|"} {
		w := watch(t)
		w.add("log", "a\nb\nc\nd")
		w.want(fmt.Sprint(lines), w.look("log", lines), want)
		w.add("log", "e\nf\n")
		w.want(fmt.Sprint(lines, " then"), w.look("log", lines), "de|f|")
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	w := watch(t)
	w.add("log", "a\n"+strings.Repeat("x", 64<<10)+strings.Repeat("y", 10)+"\n")
	w.want("a long line", w.look("log", follow.All), "a|"+strings.Repeat("x", 64<<10)+"|yyyyyyyyyy|")
	const size = 1 << 40
	if err := os.Truncate(w.path("log"), size); err != nil {
		t.Skipf("this file system has no files of a terabyte: %v", err)
	}
	w.add("log", "\nafter\n")
	w.want("a hole", w.look("log", follow.All), fmt.Sprintf("[proctor: %d bytes of output cut here]|after|", size+7-32<<20-(2+64<<10+10+1)))
	w.add("log", "more\n")
	w.want("then", w.look("log", follow.All), "more|")
}

// TestPlanted: what is no file is not read, and no link followed.
func TestPlanted(t *testing.T) {
	t.Parallel()
	w := watch(t)
	outside := filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(outside, []byte("secret\n"), 0o600), os.Symlink(outside, w.path("link")), os.Symlink("file", w.path("inside")), os.Mkdir(w.path("dir"), 0o700)); err != nil {
		t.Fatal(err)
	}
	w.add("file", "one\n")
	for _, name := range []string{"link", "inside", "dir"} {
		if got := w.look(name, follow.All); got == "" || len(w.got) > 0 {
			t.Errorf("%s: got %q, want an error", name, got)
		}
	}
}

// TestEnds: a look ends with its context, and with the first error of who takes the lines.
func TestEnds(t *testing.T) {
	t.Parallel()
	w := watch(t)
	w.add("log", "a\nb\n")
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	full := errors.New("full")
	n := 0
	err = new(follow.Log).Look(t.Context(), root, "log", follow.All, func(string) error { n++; return full })
	if !errors.Is(err, full) || n != 1 {
		t.Errorf("got %v after %d lines", err, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.log.Look(ctx, root, "log", follow.All, w.each); !errors.Is(err, context.Canceled) || len(w.got) > 0 {
		t.Errorf("got %v and %q", err, w.got)
	}
}
