package jobdir_test

import (
	"testing"
	"time"

	"github.com/proctor-run/proctor/jobdir"
	"pgregory.net/rapid"
)

func TestParseTime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"2026-06-09T08:00:00Z", "2026-06-09T08:00:00Z"},
		{"2026-06-09T08:00:00.5+00:00", "2026-06-09T08:00:00.500000Z"},
		{"2026-06-09T10:00:00", "2026-06-09T10:00:00"},
		{"2026-06-09 10:00", "2026-06-09T10:00:00"},
		{"2026-06-09t10:00:00.1234567890", "2026-06-09T10:00:00.123456"},
		{"2026-06-09_10:00:00,25z", "2026-06-09T10:00:00.250000Z"},
		{"2026-06-09", "2026-06-09T00:00:00"},
		{"2026-06-09T10:00:00+02:00", "2026-06-09T10:00:00+02:00"},
		{"2026-06-09T10:00:00-0330", "2026-06-09T10:00:00-03:30"},
		{"2026-06-09T10:00:00-00:30", "2026-06-09T10:00:00-00:30"},
		{"2024-02-29T23:59:59.000001Z", "2024-02-29T23:59:59.000001Z"},
	} {
		got, err := jobdir.ParseTime(tt.text)
		if err != nil || got.String() != tt.want {
			t.Errorf("ParseTime(%q) = %s, %v, want %s", tt.text, got, err, tt.want)
		}
	}
}

func TestParseTimeRejects(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "now", "2026", "2026-06", "2026-06-9", "2026/06/09", "2026-13-01", "2026-02-29", "0000-01-01", "2026-06-09x10:00:00",
		"2026-06-09T", "2026-06-09T10", "2026-06-09T1000", "2026-06-09T24:00:00", "2026-06-09T10:60:00", "2026-06-09T10:00:60",
		"2026-06-09T10:00:00.", "2026-06-09T10:00:00.Z", "2026-06-09T10:00:00 Z", "2026-06-09T10:00:00+2", "2026-06-09T10:00:00+24:00",
		"2026-06-09T10:00:00+02:60", "2026-06-09T10:00:00Z!", "٢٠٢٦-06-09T10:00:00",
	} {
		if got, err := jobdir.ParseTime(text); err == nil {
			t.Errorf("ParseTime(%q) = %s, want an error", text, got)
		}
	}
}

func TestTimeKinds(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", 2*3600)
	moment := time.Date(2026, 6, 9, 10, 0, 0, 123456789, zone)
	if got, want := jobdir.UTC(moment).String(), "2026-06-09T08:00:00.123456Z"; got != want {
		t.Errorf("UTC: got %s, want %s", got, want)
	}
	local := jobdir.Local(moment)
	if got, want := local.String(), "2026-06-09T10:00:00.123456"; got != want || !local.Naive() {
		t.Errorf("Local: got %s, want %s", got, want)
	}
	if got := local.In(zone); !got.Equal(moment.Truncate(time.Microsecond)) {
		t.Errorf("In: got %s, want %s", got, moment)
	}
	if local.Equal(jobdir.UTC(moment)) || !jobdir.UTC(moment).Equal(jobdir.UTC(moment.UTC())) {
		t.Error("Equal does not tell naive from aware")
	}
}

// TestTimeRoundTrip writes any time and reads the same back.
func TestTimeRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		moment := time.UnixMicro(rapid.Int64Range(-62135596800000000, 253402300799999999).Draw(t, "micros")).UTC()
		want := jobdir.UTC(moment)
		if rapid.Bool().Draw(t, "naive") {
			want = jobdir.Local(moment)
		}
		got, err := jobdir.ParseTime(want.String())
		if err != nil || !got.Equal(want) || got.String() != want.String() {
			t.Fatalf("%s reads as %s, %v", want, got, err)
		}
	})
}

func FuzzParseTime(f *testing.F) {
	for _, text := range []string{"2026-06-09T08:00:00.123456Z", "2026-06-09", "2026-06-09 10:00-03:30", "2026-06-09T10:00:00,5"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := jobdir.ParseTime(text)
		if err != nil {
			return
		}
		again, err := jobdir.ParseTime(at.String())
		if err != nil || !again.Equal(at) {
			t.Fatalf("%q reads as %s, and that as %s, %v", text, at, again, err)
		}
	})
}
