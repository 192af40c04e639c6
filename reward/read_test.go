package reward_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/reward"
)

func TestReadRefusesHugeFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "reward.json")
	write(t, path, nil)
	for size, want := range map[int64]error{reward.MaxFileSize: reward.Unparsable, reward.MaxFileSize + 1: reward.TooLarge} {
		if err := os.Truncate(path, size); err != nil { // a hole costs no space
			t.Fatal(err)
		}
		if _, err := reward.Read(filepath.Dir(path)); !errors.Is(err, want) {
			t.Errorf("%d bytes: got error %v, want %v", size, err, want)
		}
	}
}

func TestReadReportsHostErrors(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		dir := t.TempDir()
		path := filepath.Join(dir, "reward.txt")
		write(t, path, []byte("1"))
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		_, err := reward.Read(dir)
		if want := fmt.Sprintf("[Errno 13] Permission denied: '%s'", path); !errors.Is(err, reward.NotAllowed) || err.Error() != want {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
	dir := filepath.Join(t.TempDir(), strings.Repeat("x", 300))
	if _, err := reward.Read(dir); !errors.Is(err, reward.Unreadable) || !strings.HasSuffix(err.Error(), "reward.json'") {
		t.Errorf("name too long: got error %v", err)
	}
}

func TestErrorKinds(t *testing.T) {
	t.Parallel()
	_, err := reward.ParseJSON([]byte(`{"a": [}`), "/logs/reward.json")
	var e *reward.Error
	if !errors.As(err, &e) || e.ErrorType() != "VerifierOutputParseError" || errors.Is(err, reward.Empty) {
		t.Errorf("got error %v", err)
	}
	if e.Cause == nil || e.Cause.Error() != "Expecting value: line 1 column 8 (char 7)" {
		t.Errorf("got cause %v", e.Cause)
	}
}

func TestValidationMessage(t *testing.T) {
	t.Parallel()
	_, err := reward.ParseJSON([]byte(`{"a.b": "it's", "ok": 1, "\ud800": [1, "`+strings.Repeat("é", 40)+`"]}`), "")
	const site = "\n    For further information visit https://errors.pydantic.dev/2.13/v/"
	list := ` [type=%s, input_value=[1, '` + strings.Repeat("é", 10) + `...` + strings.Repeat("é", 11) + `'], input_type=list]`
	want := "4 validation errors for VerifierResult" +
		"\nrewards.`a.b`.float\n  Input should be a valid number, unable to parse string as a number" +
		` [type=float_parsing, input_value="it's", input_type=str]` + site + "float_parsing" +
		"\nrewards.`a.b`.int\n  Input should be a valid integer, unable to parse string as an integer" +
		` [type=int_parsing, input_value="it's", input_type=str]` + site + "int_parsing" +
		"\nrewards.\ufffd\ufffd\ufffd.float\n  Input should be a valid number" + fmt.Sprintf(list, "float_type") + site + "float_type" +
		"\nrewards.\ufffd\ufffd\ufffd.int\n  Input should be a valid integer" + fmt.Sprintf(list, "int_type") + site + "int_type"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestValidationIsBounded(t *testing.T) {
	t.Parallel()
	var doc strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&doc, `,"%d":null`, i)
	}
	_, err := reward.ParseJSON([]byte("{"+doc.String()[1:]+"}"), "")
	var e *reward.Error
	if !errors.As(err, &e) || e.Total != 6000 || len(e.Problems) != reward.MaxProblems {
		t.Fatalf("got %v", err)
	}
	if !strings.HasPrefix(e.Message, "6000 validation errors for VerifierResult\n") || !strings.HasSuffix(e.Message, "\n(5000 more)") {
		t.Errorf("got message %.60q...", e.Message)
	}
}

// TestReadFollowsNoLinkOut: what a sandbox plants never makes anybody read, and publish,
// a file of the host.
func TestReadFollowsNoLinkOut(t *testing.T) {
	t.Parallel()
	const secret = "sk-of-the-host"
	outside := t.TempDir()
	write(t, filepath.Join(outside, "config.json"), []byte(`{"token": "`+secret+`", "reward": 1}`))
	write(t, filepath.Join(outside, "empty"), nil)
	for _, c := range []struct {
		name, target string
		want         error
	}{
		{"absolute", filepath.Join(outside, "config.json"), reward.Tampered},
		{"relative", "../../../../../../../../../.." + filepath.Join(outside, "config.json"), reward.Tampered},
		{"through a link", "out/config.json", reward.Tampered},
		{"to a directory", outside, reward.IsDirectory},
		{"to nothing", filepath.Join(outside, "none"), nil},
		{"to something empty", filepath.Join(outside, "empty"), reward.Empty},
		{"within the trial", "../agent/reward.json", nil},
	} {
		for _, name := range []string{reward.JSONFile, reward.TextFile} {
			t.Run(c.name+" "+name, func(t *testing.T) {
				t.Parallel()
				trial := t.TempDir()
				dir := filepath.Join(trial, "verifier")
				for _, d := range []string{dir, filepath.Join(trial, "agent")} {
					if err := os.Mkdir(d, 0o755); err != nil {
						t.Fatal(err)
					}
				}
				write(t, filepath.Join(trial, "agent", "reward.json"), []byte("0.25"))
				write(t, filepath.Join(dir, "reward.txt"), []byte("0.25"))
				for path, target := range map[string]string{name: c.target, "out": outside} {
					_ = os.Remove(filepath.Join(dir, path))
					if err := os.Symlink(target, filepath.Join(dir, path)); err != nil {
						t.Fatal(err)
					}
				}
				_, err := reward.Read(dir)
				switch {
				case c.want != nil && !errors.Is(err, c.want):
					t.Errorf("got %v, want %v", err, c.want)
				case c.name == "to nothing" && name == reward.JSONFile && err != nil:
					t.Errorf("reward.txt was not read: %v", err)
				case c.name == "to nothing" && name == reward.TextFile && !errors.Is(err, reward.NotFound):
					t.Errorf("got %v", err)
				}
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("%v holds the host's file", err)
				}
			})
		}
	}
}
