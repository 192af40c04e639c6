package jobdir_test

import (
	"testing"

	"github.com/proctor-run/proctor/jobdir"
)

// FuzzParseConfig reads anything; what it accepts it writes so that it reads
// back the same.
func FuzzParseConfig(f *testing.F) {
	for _, text := range []string{
		`{"task":{"path":"t"}}`,
		`{"task":{"name":"o/t","ref":"1"},"environment":{"env":["A=b"],"mounts_json":[{"type":"bind","source":"a","target":"b"}]},"agent":{"env":{"KEY":"x"},"mcp_servers":[{"name":"n","url":"u"}]}}`,
		`{"task":{"path":"t"},"artifacts":["a",{"source":"b"}],"verifier":{"kwargs":{"a":1e5}},"timeout_multiplier":"2"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _, err := jobdir.ParseTrialConfig(data)
		if err != nil {
			return
		}
		text := c.AppendJSON(nil, nil)
		again, _, err := jobdir.ParseTrialConfig(text)
		if err != nil {
			t.Fatalf("reading back: %v\n%s", err, text)
		}
		if got := again.AppendJSON(nil, nil); string(got) != string(text) {
			t.Fatalf("got\n%s\nwant\n%s", got, text)
		}
	})
}

// FuzzParseResult is [FuzzParseConfig] for results.
func FuzzParseResult(f *testing.F) {
	for _, text := range []string{
		`{"task_name":"t","trial_name":"n","trial_uri":"u","task_id":{"path":"p"},"task_checksum":"c","config":{"task":{"path":"p"}},"agent_info":{"name":"a","version":"1"},"verifier_result":{"rewards":{"r":1,"s":null,"t":"0.5"}}}`,
		`{"task_name":"t","trial_name":"n","trial_uri":"u","task_id":{"org":"o","name":"n","ref":null},"task_checksum":"c","config":{"task":{"name":"o/n"}},"agent_info":{"name":"a","version":"1","model_info":{"name":"m","provider":null}},"step_results":[{"step_name":"s","agent_result":{"rollout_details":[{"logprobs":[[1]]}],"metadata":{"a":[1]}}}],"started_at":"2026-06-09T10:00:00.5Z","agent_setup":{}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := jobdir.ParseTrialResult(data)
		if err != nil {
			return
		}
		text := r.AppendJSON(nil, nil)
		again, err := jobdir.ParseTrialResult(text)
		if err != nil {
			t.Fatalf("reading back: %v\n%s", err, text)
		}
		if got := again.AppendJSON(nil, nil); string(got) != string(text) {
			t.Fatalf("got\n%s\nwant\n%s", got, text)
		}
	})
}
