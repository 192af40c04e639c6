package protocol_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube/protocol"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/value"
)

// made makes the error of a vector.
func made(t *testing.T, c *value.Object) *protocol.Error {
	t.Helper()
	d := vectors.Object(c, "details")
	text := func(key string) string { return vectors.Str(d, key) }
	switch class := vectors.Str(c, "class"); class {
	case "TaskNotFoundException":
		return protocol.TaskNotFound(text("task_id"))
	case "SessionNotFoundException":
		return protocol.SessionNotFound(text("session_id"))
	case "SessionLimitException":
		return protocol.SessionLimitExceeded(vectors.Int(d, "limit"))
	case "BenchmarkNotFoundException":
		return protocol.BenchmarkNotFound()
	case "ToolExecutionException":
		return protocol.ToolExecutionFailed(text("tool_name"), text("error"))
	case "InvalidActionException":
		return protocol.InvalidAction(text("action_name"), text("reason"))
	case "TaskClosedException":
		return protocol.TaskClosed(text("session_id"))
	case "ResourceNotFoundException":
		return protocol.ResourceNotFound(text("uri"))
	case "CUBEException":
		return protocol.New(vectors.Str(c, "code"), vectors.Str(c, "message"), d)
	default:
		t.Fatalf("unknown class %q", class)
		return nil
	}
}

func TestVectors(t *testing.T) {
	t.Parallel()
	file, err := value.Decode(vectors.File(t, "cube/exceptions.json"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, item := range vectors.List(file.(*value.Object), "cases") {
		c := item.(*value.Object)
		if vectors.Str(c, "class") == "KeyError" {
			continue // of presets, which package cube tests
		}
		checked++
		t.Run(vectors.Str(c, "id"), func(t *testing.T) {
			t.Parallel()
			got := made(t, c)
			want := []string{vectors.Str(c, "class"), vectors.Str(c, "code"), vectors.Str(c, "message"), value.Repr(vectors.Object(c, "details"))}
			if diff := cmp.Diff(want, []string{got.ErrorType(), got.Code, got.Error(), value.Repr(got.Details)}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if checked < 9 {
		t.Errorf("%d errors, want all nine of the protocol", checked)
	}
}

// TestNewCopies: an error does not change with what it was made of, and has details
// where there were none.
func TestNewCopies(t *testing.T) {
	t.Parallel()
	details := &value.Object{}
	details.Set("slot", value.Str("a"))
	err := protocol.New("BUSY", "no slot is free", details)
	details.Set("slot", value.Str("b"))
	if got := value.Repr(err.Details); got != "{'slot': 'a'}" {
		t.Errorf("details are %s", got)
	}
	if got := value.Repr(protocol.New("BUSY", "no slot is free", nil).Details); got != "{}" {
		t.Errorf("no details are %s", got)
	}
}
