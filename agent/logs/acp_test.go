package logs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/atif"
)

// acpSession is what is said in a run, in the words of several agents.
const acpSession = `{"at":"2026-01-01T00:00:00.000Z","from":"proctor","message":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}}
{"at":"2026-01-01T00:00:01.000Z","from":"agent","message":{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"player","version":"3"}}}}
{"from":"agent","text":"a warning"}
{"from":"proctor","message":{"jsonrpc":"2.0","id":2,"method":"session/new","params":{}}}
{"from":"agent","message":{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","models":{"currentModelId":"m"}}}}
{"at":"2026-01-01T00:00:02.000Z","from":"proctor","message":{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"prompt":[{"type":"text","text":"do"},{"type":"text","text":"it"}]}}}
{"from":"agent","message":{"method":"session/update","params":{"update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"h"}}}}}
{"from":"agent","message":{"method":"session/update","params":{"update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"m"}}}}}
{"from":"agent","message":{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I "}}}}}
{"from":"agent","message":{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"act"}}}}}
{"from":"agent","message":{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":"a","title":"Shell","kind":"execute","status":"pending","rawInput":{"command":"x"},"content":[]}}}}
{"from":"agent","message":{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"toolCall":{"toolCallId":"b","title":"write y","kind":"edit","content":[{"type":"content","content":{"type":"text","text":"may I?"}}]}}}}
{"from":"proctor","message":{"jsonrpc":"2.0","id":0,"result":{}}}
{"from":"agent","message":{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","toolCallId":"b","status":"completed","content":[{"type":"diff","path":"/y","newText":"z"}]}}}}
{"from":"agent","message":{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"in_progress","content":[{"type":"content","content":{"type":"text","text":"so far"}}]}}}}
{"from":"agent","message":{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"failed","rawOutput":{"code":1}}}}}
{"from":"agent","message":{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed","rawOutput":"again"}}}}
{"from":"agent","message":{"method":"session/update","params":{"update":{"sessionUpdate":"usage_update","cost":{"amount":0.5,"currency":"USD"}}}}}
{"from":"agent","message":{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"done"}}}}}
{"from":"agent","message":{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":10,"cachedReadTokens":4,"outputTokens":3,"totalTokens":17}}}}
`

func TestACP(t *testing.T) {
	t.Parallel()
	got := read(t, "acp", "acp.jsonl", acpSession)
	want := []step{
		{Source: atif.User, Said: "do\nit"},
		{Source: atif.Agent, Said: "I act", Thought: "hm", Call: `execute {"command": "x"};edit {"title": "write y"};`, Result: `changed /y;{"code": 1}{"is_error": true};`},
		{Source: atif.Agent, Said: "done"},
	}
	if diff := cmp.Diff(want, stepsOf(t, got)); diff != "" || got.Failure != "" {
		t.Errorf("failure %q (-want +got):\n%s", got.Failure, diff)
	}
	a, at := got.Trajectory.Agent, got.Trajectory.Steps[0].Timestamp
	if a.Name != "player" || a.Version != "3" || *a.ModelName != "p/m" || *got.Trajectory.SessionID != "s" || *at != "2026-01-01T00:00:02.000Z" {
		t.Errorf("got %+v, %s", a, *at)
	}
	if got.InputTokens.String() != "14" || got.CachedTokens.String() != "4" || got.OutputTokens.String() != "3" || *got.CostUSD != 0.5 {
		t.Errorf("got %+v", got)
	}
}

// TestACPMeters has agents that say what they used in other places.
func TestACPMeters(t *testing.T) {
	t.Parallel()
	begin, _, _ := strings.Cut(acpSession, `{"from":"agent","message":{"method"`)
	const said = `{"from":"agent","message":{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"`
	got := read(t, "acp", "acp.jsonl", begin+said+`a"}}}}}
{"from":"agent","message":{"id":3,"result":{"_meta":{"quota":{"token_count":{"input_tokens":7,"output_tokens":2}}}}}}`)
	if got.InputTokens.String() != "7" || got.OutputTokens.String() != "2" || got.CostUSD != nil {
		t.Errorf("got %+v", got)
	}
	got = read(t, "acp", "acp.jsonl", begin+said+`a"}}}}}
`+said+`"},"_meta":{"usage":{"inputTokens":10,"cachedReadTokens":4,"outputTokens":3}}}}}}
{"from":"agent","message":{"id":3,"result":{"usage":{"inputTokens":99,"outputTokens":99}}}}`)
	if diff := cmp.Diff([]step{{Source: atif.User, Said: "do\nit"}, {Source: atif.Agent, Said: "a", Input: "10", Cached: "4", Completed: "3"}}, stepsOf(t, got)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	got = read(t, "acp", "acp.jsonl", begin+`{"from":"agent","message":{"id":3,"error":{"code":-32603,"message":"Internal error","data":{"details":"401"}}}}`)
	if got.Failure != `Internal error {"details": "401"}` || len(got.Trajectory.Steps) != 1 {
		t.Errorf("got %+v", got)
	}
}
