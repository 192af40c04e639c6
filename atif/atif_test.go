package atif

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/value"
)

const small = `{"agent":{"name":"a","version":"1"},"steps":[{"step_id":1,"source":"user","message":"m"}]}`

// TestMessages compares whole lines of the report with the words of the format,
// section 6.4.
func TestMessages(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`5`:                           "Trajectory must be a JSON object/dict",
		`{`:                           "Invalid JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
		with(`"extra":[]`):            "trajectory.extra: expected dict type, got list",
		with(`"notes":5`):             "trajectory.notes: expected string type, got int",
		with(`"notes":true`):          "trajectory.notes: expected string type, got bool",
		with(`"agent":null`):          "trajectory.agent: Input should be a valid dictionary or instance of Agent",
		with(`"steps":null`):          "trajectory.steps: Input should be a valid list",
		with(`"schema_version":"x"`):  "trajectory.schema_version: Input should be 'ATIF-v1.0', 'ATIF-v1.1', 'ATIF-v1.2', 'ATIF-v1.3', 'ATIF-v1.4', 'ATIF-v1.5', 'ATIF-v1.6' or 'ATIF-v1.7', got 'x'",
		with(`"schema_version":null`): "trajectory.schema_version: Input should be 'ATIF-v1.0', 'ATIF-v1.1', 'ATIF-v1.2', 'ATIF-v1.3', 'ATIF-v1.4', 'ATIF-v1.5', 'ATIF-v1.6' or 'ATIF-v1.7'",
		with(`"b":1`):                 "trajectory.b: unexpected field (not part of ATIF schema)",
		stepWith(`"step_id":0`):       "trajectory.steps.0.step_id: Input should be greater than or equal to 1",
		stepWith(`"step_id":100000000000000000000`):                          "trajectory.: Value error, steps[0].step_id: expected 1 (sequential from 1), got 100000000000000000000",
		stepWith(`"step_id":1.5`):                                            "trajectory.steps.0.step_id: Input should be a valid integer, got a number with a fractional part",
		stepWith(`"timestamp":"2025-13-01"`):                                 "trajectory.steps.0.timestamp: Value error, Invalid ISO 8601 timestamp: month must be in 1..12",
		stepWith(`"timestamp":""`):                                           "trajectory.steps.0.timestamp: Value error, Invalid ISO 8601 timestamp: Invalid isoformat string: ''",
		stepWith(`"metrics":{}`):                                             "trajectory.steps.0: Value error, Field 'metrics' is only applicable when source is 'agent', but source is 'user'",
		stepWith(`"source":"agent","metrics":{"cost_usd":[]}`):               "trajectory.steps.0.metrics.cost_usd: expected float type, got list",
		stepWith(`"source":"agent","is_copied_context":[]`):                  "trajectory.steps.0.is_copied_context: Input should be a valid boolean",
		stepWith(`"message":[{"type":"text","text":"t","x":1}]`):             "trajectory.steps.0.message.list[function-after[validate_content_type(), ContentPart]].0.x: unexpected field (not part of ATIF schema)",
		stepWith(`"observation":{"results":[{"source_call_id":"é"}]}`):       "trajectory.: Value error, Observation result references source_call_id 'é' which is not found in step 1's tool_calls",
		with(`"subagent_trajectories":[` + small + `]`):                      "trajectory.: Value error, subagent_trajectories[0].trajectory_id is required for embedded subagents",
		stepWith(`"source":"agent","llm_call_count":0,"metrics":{}`):         "trajectory.steps.0: Value error, Field 'metrics' must be absent when llm_call_count is 0 (deterministic dispatch)",
		stepWith(`"source":"agent","reasoning_effort":[]`):                   "trajectory.steps.0.reasoning_effort.float: expected float type, got list",
		stepWith(`"observation":{"results":[{"source_call_id":"\ud800"}]}`):  "trajectory.steps.0.observation.results.0.source_call_id: Input should be a valid string, unable to parse raw data as a unicode string",
		stepWith(`"source":"agent","metrics":{"prompt_token_ids":[1,null]}`): "trajectory.steps.0.metrics.prompt_token_ids.1: Input should be a valid integer",
	} {
		_, err := Parse([]byte(text))
		bad, ok := errors.AsType[*Invalid](err)
		if !ok {
			t.Errorf("%s: got %v", text, err)
			continue
		}
		if got := bad.Problems[len(bad.Problems)-1].String(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

// with is the small trajectory with one member more, or in another's place.
func with(member string) string {
	name, _, _ := strings.Cut(member, ":")
	for _, m := range []string{`"agent":{"name":"a","version":"1"}`, `"steps":[{"step_id":1,"source":"user","message":"m"}]`} {
		if strings.HasPrefix(m, name) {
			return strings.Replace(small, m, member, 1)
		}
	}
	return strings.Replace(small, "{", "{"+member+",", 1)
}

// stepWith is the small trajectory with members of its step added or replaced;
// the last of a name counts.
func stepWith(members string) string {
	return strings.Replace(small, `"message":"m"`, `"message":"m",`+members, 1)
}

// TestTimestamps has what CPython 3.12 and 3.13 say of these texts.
func TestTimestamps(t *testing.T) {
	t.Parallel()
	for _, s := range strings.Split(`2025-01-15|20250115T103000|2025-W03-3|2025W033|2025-W03|2025W03|2025-01-15T10|2025-01-15 10:30|2025-01-15é10:30|
2025-01-15T10:30:00.123456789Z|2025-01-15T10:30:00,5|2025-01-15T10:30:00+05:30|2025-01-15T10:30:00+0530|2025-01-15T10:30:00+00:00:30|2020-W53-7|
2025-W03-10|2025W0331030|2024-02-29|2025-01-15T10.Z|2025-01-15T10:30:00.1234567x+00:00|2025-01-15T10300012`, "|") {
		if _, err := checkTimestamp(strings.TrimSpace(s)); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, s := range []string{
		"2025-01-15T10:30:00z", "2025-1-15", "2025-01", "2025-015", "2025015", " 2025-01-15", "2025-01-15T10:30:60", "2025-01-15T10:30:00+24:00",
		"2025-01-15T10:30:00-24:00", "2025-01-15T24:00:00", "2025-02-29", "2021-W53-1", "2025-W03-", "2025-W03-8", "9999-W52-7", "0000-01-01", "2025-01-15T",
		"2025-01-15T10:3000", "2025-01-15T10:30:00.x", "2025-01-15T10:30:00-", "1-1-1", "2025-01-15T10:30:00.1x",
	} {
		if _, err := checkTimestamp(s); err == nil {
			t.Errorf("%q is accepted", s)
		}
	}
}

// TestStyles writes one trajectory in all three layouts.
func TestStyles(t *testing.T) {
	t.Parallel()
	tr := Trajectory{
		Agent: AgentInfo{Name: "é", Version: "1"},
		Steps: []Step{{ID: 1, Source: Agent, Message: Text(""), Metrics: &Metrics{CostUSD: new(1e-5), Logprobs: []float64{-0.5, 0}}}},
	}
	head := func(name string) string {
		return "{\n  \"schema_version\": \"ATIF-v1.7\",\n  \"agent\": {\n    \"name\": \"" + name + "\",\n    \"version\": \"1\"\n  },\n  \"steps\": [\n    {\n      \"step_id\": 1,\n      \"source\": \"agent\",\n      \"message\": \"\",\n      \"metrics\": {\n        \"cost_usd\": 1e-05,\n        \"logprobs\": "
	}
	const tail = "\n      }\n    }\n  ]\n}"
	long := "[\n          -0.5,\n          0.0\n        ]"
	for style, want := range map[Style]string{
		Compact: head(`\u00e9`) + "[-0.5, 0.0]" + tail,
		ASCII:   head(`\u00e9`) + long + tail,
		Unicode: head("é") + long + tail,
	} {
		if diff := cmp.Diff(want, string(tr.Append(nil, style))); diff != "" {
			t.Errorf("style %d (-want +got):\n%s", style, diff)
		}
	}
}

func TestMissingImages(t *testing.T) {
	t.Parallel()
	doc := decoded(t, []byte(`{"steps":[5,{"message":[{"type":"image","source":{"path":"a.png"}},{"type":"image","source":{"path":"https://h/x"}},{"type":"text","source":{"path":"t"}}],
		"observation":{"results":[{"content":"x"},{"content":[{"type":"image","source":{"path":"b.png"}},{"type":"image"}]}]}}]}`))
	var got []string
	for _, p := range MissingImages(doc, func(path string) bool { return path == "c.png" }) {
		got = append(got, p.String())
	}
	if diff := cmp.Diff([]string{
		"trajectory.steps[1].message[0].source.path: referenced image file does not exist: a.png",
		"trajectory.steps[1].observation.results[1].content[0].source.path: referenced image file does not exist: b.png",
	}, got); diff != "" {
		t.Error(diff)
	}
	if MissingImages(doc, func(string) bool { return true }) != nil || !HasImages(doc) || HasImages(decoded(t, []byte(small))) {
		t.Error("images are miscounted")
	}
}

// TestDeepNesting reads trajectories of subagents of subagents as deep as JSON
// goes.
func TestDeepNesting(t *testing.T) {
	t.Parallel()
	const open = `{"trajectory_id":"t","agent":{"name":"a","version":"1"},"steps":[{"step_id":1,"source":"user","message":""}],"subagent_trajectories":[`
	nested := func(depth int) []byte { return []byte(strings.Repeat(open, depth) + strings.Repeat("]}", depth)) }
	if _, err := Parse(nested(value.MaxDepth/2 - 2)); err != nil {
		t.Fatal(err)
	}
	tr, err := Parse(nested(100)) // indentation makes deeper ones large
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Parse(tr.Append(nil, Compact)); err != nil || len(again.Subagents) != 1 {
		t.Errorf("written again: %v", err)
	}
}

// FuzzParse holds that no input makes the reader panic, and that what it accepts
// is read again from what is written in every layout.
func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(with(`"extra":{"a":null},"final_metrics":{"total_cost_usd":"1e400"}`)))
	f.Add([]byte(stepWith(`"timestamp":"2025-W03-3T10:30:00.5+05:30","source":"agent","reasoning_effort":true,"tool_calls":[{"tool_call_id":"","function_name":"f","arguments":{}}]`)))
	f.Add([]byte(stepWith(`"message":[{"type":"image","source":{"media_type":"image/png","path":"x"}}],"observation":{"results":[{"content":[]}]}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := value.Decode(data)
		if err != nil {
			return
		}
		HasImages(v)
		if o, ok := v.(*value.Object); ok {
			Conversations(o, true)
			WholeConversation(o, false)
		}
		tr, err := Decode(v)
		if err != nil {
			return
		}
		for _, s := range []Style{Compact, ASCII, Unicode} {
			first := tr.Append(nil, s)
			again, err := Parse(first)
			if err != nil {
				// What a file cannot hold is written nevertheless.
				if s == Unicode && hasSurrogate(v) {
					continue
				}
				t.Fatalf("style %d: %v\n%s", s, err, first)
			}
			if diff := cmp.Diff(string(first), string(again.Append(nil, s))); diff != "" {
				t.Fatalf("style %d:\n%s", s, diff)
			}
		}
	})
}

func hasSurrogate(v value.Value) bool {
	return value.HasSurrogate(string(value.AppendDumps(nil, v, value.DumpsOptions{Unicode: true})))
}
