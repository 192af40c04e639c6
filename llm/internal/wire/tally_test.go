package wire_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
)

// Streams as servers have them, in words of our own.
const (
	anthropicStream = `event: message_start
data: {"type":"message_start","message":{"model":"claude-x","id":"msg_1","type":"message","role":"assistant","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":300,"cache_read_input_tokens":4000,"cache_creation":{"ephemeral_5m_input_tokens":300,"ephemeral_1h_input_tokens":0},"output_tokens":3,"service_tier":"standard"}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}          }

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}   }

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"AAAA"}  }

event: content_block_stop
data: {"type":"content_block_stop","index":0          }

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"look","input":{}}  }

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}   }

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"at\": 1}"} }

event: content_block_stop
data: {"type":"content_block_stop","index":1       }

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89}         }

event: message_stop
data: {"type":"message_stop"    }

`
	openaiStream = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"ab"}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":{"content":"Good day"},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":16,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":2,"audio_tokens":0}}}

data: [DONE]

`
	openrouterStream = ": OPENROUTER PROCESSING\r\n\r\n: OPENROUTER PROCESSING\r\n\r\n" +
		`data: {"id":"gen-1","provider":"P","model":"a/b","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"Hm","reasoning_details":[{"type":"reasoning.text","text":"Hm"}]},"finish_reason":null,"native_finish_reason":null}]}` + "\r\n\r\n" +
		`data: {"id":"gen-1","model":"a/b","choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":"length","native_finish_reason":"MAX"}]}` + "\r\n\r\n" +
		`data: {"id":"gen-1","model":"a/b","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":{"prompt_tokens":8,"completion_tokens":2,"cost":0.00125,"is_byok":false,"cost_details":{"upstream_inference_cost":null},"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":5}}}` + "\r\n\r\n" +
		"data: [DONE]\r\n\r\n"
	vllmStream = `data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":{"prompt_tokens":6,"total_tokens":6,"completion_tokens":0}}

data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"usage":{"prompt_tokens":6,"total_tokens":7,"completion_tokens":1}}

data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens":6,"total_tokens":9,"completion_tokens":3}}

data: {"id":"c","model":"m","choices":[],"usage":{"prompt_tokens":6,"total_tokens":9,"completion_tokens":3}}

data: [DONE]

`
	responsesStream = `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"incomplete_details":null,"model":"gpt-x-2026","output":[],"usage":null}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","sequence_number":2,"item_id":"rs_1","output_index":0,"summary_index":0,"delta":"Hm"}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":3,"item_id":"msg_1","output_index":1,"content_index":0,"delta":"yes","logprobs":[]}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","sequence_number":4,"item_id":"fc_1","output_index":2,"delta":"{}"}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":5,"output_index":2,"item":{"id":"fc_1","type":"function_call","status":"completed","arguments":"{}","call_id":"call_1","name":"f"}}

event: response.completed
data: {"type":"response.completed","sequence_number":6,"response":{"id":"resp_1","object":"response","status":"completed","error":null,"model":"gpt-x-2026","output":[],"usage":{"input_tokens":37,"input_tokens_details":{"cached_tokens":7},"output_tokens":11,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":48}}}

`
	geminiStream = `data: {"candidates":[{"content":{"parts":[{"text":"Hm.","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":10,"totalTokenCount":25,"promptTokensDetails":[{"modality":"TEXT","tokenCount":10}],"thoughtsTokenCount":15},"modelVersion":"gemini-x","responseId":"r"}` + "\r\n\r\n" +
		`data: {"candidates":[{"content":{"parts":[{"text":"yes"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":2,"totalTokenCount":40,"cachedContentTokenCount":4,"toolUsePromptTokenCount":5,"thoughtsTokenCount":23},"modelVersion":"gemini-x","responseId":"r"}` + "\r\n\r\n"
)

type answer struct {
	name string
	api  llm.API
	text string
	want wire.Tallied
}

func answers() []answer {
	return []answer{
		{"Anthropic", llm.Anthropic, anthropicStream, wire.Tallied{
			Usage: &llm.Usage{Prompt: 4312, Completion: 89, Cached: 4000, CacheWrite: 300},
			Model: "claude-x", Finish: llm.CallsMade, Whole: true, Text: 12,
		}},
		{
			"Anthropic with the input told again", llm.Anthropic,
			strings.ReplaceAll(anthropicStream, `"usage":{"output_tokens":89}`, `"usage":{"input_tokens":14,"cache_creation_input_tokens":null,"cache_read_input_tokens":5000,"output_tokens":89}`),
			wire.Tallied{
				Usage: &llm.Usage{Prompt: 5314, Completion: 89, Cached: 5000, CacheWrite: 300},
				Model: "claude-x", Finish: llm.CallsMade, Whole: true, Text: 12,
			},
		},
		{"OpenAI", llm.Chat, openaiStream, wire.Tallied{
			Usage: &llm.Usage{Prompt: 19, Completion: 10, Cached: 16}, Model: "gpt-x", Finish: llm.Stopped, Whole: true, Text: 8,
		}},
		{"OpenRouter", llm.Chat, openrouterStream, wire.Tallied{
			Usage: &llm.Usage{Prompt: 8, Completion: 2, CacheWrite: 5}, Cost: new(0.00125), Model: "a/b", Finish: llm.Length, Whole: true, Text: 5,
		}},
		{"vLLM with usage in every chunk", llm.Chat, vllmStream, wire.Tallied{
			Usage: &llm.Usage{Prompt: 6, Completion: 3}, Model: "m", Finish: llm.CallsMade, Whole: true, Text: 3,
		}},
		{"Moonshot", llm.Chat, `data: {"model":"k","choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":19,"completion_tokens":13}}]}` + "\n\ndata: [DONE]", wire.Tallied{
			Usage: &llm.Usage{Prompt: 19, Completion: 13}, Model: "k", Finish: llm.Stopped, Whole: true,
		}},
		{"Groq", llm.Chat, `data: {"model":"k","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"r","usage":{"queue_time":0.1,"prompt_tokens":19,"completion_tokens":13}}}` + "\n\n", wire.Tallied{
			Usage: &llm.Usage{Prompt: 19, Completion: 13}, Model: "k", Finish: llm.Stopped, Whole: true,
		}},
		{"DeepSeek", llm.Chat, `{"model":"d","choices":[{"index":0,"message":{"role":"assistant","content":"ja","reasoning_content":"Hm"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":1}}`, wire.Tallied{
			Usage: &llm.Usage{Prompt: 9, Completion: 4, Cached: 8}, Model: "d", Finish: llm.Stopped, Whole: true, Text: 4,
		}},
		{"Mistral", llm.Chat, `data:{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]},{"type":"text","text":"\u00e4\n\ud83d\ude00"}]},"finish_reason":""}]}` + "\n\n", wire.Tallied{
			Text: 9,
		}},
		{"older forms", llm.Chat, `{"choices":[{"text":"ab","message":{"refusal":"c","function_call":{"name":"f","arguments":"{}"},"tool_calls":[{"function":{"arguments":{"a":1}}}]},"finish_reason":"error"}]}`, wire.Tallied{
			Whole: true, Text: 12,
		}},
		{"neither JSON nor a stream", llm.Chat, "<html>\n", wire.Tallied{}},
		{"Gemini has not ended", llm.Gemini, "data: {\"candidates\":[{\"finishReason\":\"FINISH_REASON_UNSPECIFIED\",\"content\":{\"parts\":[{\"functionCall\":{\"args\":null}}]}}]}\n\n", wire.Tallied{}},
		{"two choices", llm.Chat, "data: {\"choices\":[{\"index\":1,\"delta\":{},\"finish_reason\":\"length\"}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"content_filter\"}]}\n\n", wire.Tallied{
			Finish: llm.Filtered, Whole: true,
		}},
		{"data on several lines", llm.Chat, "id: 7\rdata: {\"model\":\rdata: \"m\",\rretry: 3\rdata\rdata:\"choices\":[]}\r\rdata: [DONE]\r\r", wire.Tallied{Model: "m", Whole: true}},
		{"responses", llm.Responses, responsesStream, wire.Tallied{
			Usage: &llm.Usage{Prompt: 37, Completion: 11, Cached: 7}, Model: "gpt-x-2026", Finish: llm.CallsMade, Whole: true, Text: 7,
		}},
		{"responses without a status", llm.Responses, `data: {"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":-3,"output_tokens":1e99}}}` + "\n\n", wire.Tallied{
			Usage: &llm.Usage{Prompt: -1, Completion: 1 << 53}, Finish: llm.Length, Whole: true,
		}},
		{"Gemini", llm.Gemini, geminiStream, wire.Tallied{
			Usage: &llm.Usage{Prompt: 15, Completion: 25, Cached: 4}, Model: "gemini-x", Finish: llm.Stopped, Whole: true, Text: 6,
		}},
		{"Gemini's list", llm.Gemini, "[{\n  \"candidates\": [{\"content\": {\"parts\": [{\"functionCall\": {\"name\": \"f\", \"args\": {\"a\": \"]}\\\"\"}}}]}}]\n}\n,\r\n{\"candidates\": [{\"finishReason\": \"STOP\"}],\n \"usageMetadata\": {\"promptTokenCount\": 3}}]\n", wire.Tallied{
			Usage: &llm.Usage{Prompt: 3}, Finish: llm.CallsMade, Whole: true, Text: 13,
		}},
		{"Gemini blocked the prompt", llm.Gemini, `data: {"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":3,"totalTokenCount":3},"modelVersion":"g"}` + "\n\n", wire.Tallied{
			Usage: &llm.Usage{Prompt: 3}, Model: "g", Finish: llm.Filtered, Whole: true,
		}},
	}
}

func failures() []answer {
	text := func(s string) json.RawMessage { return json.RawMessage(s) }
	return []answer{
		{"Anthropic", llm.Anthropic, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", wire.Tallied{
			Failure: text(`{"type":"overloaded_error","message":"Overloaded"}`),
		}},
		{"OpenRouter", llm.Chat, "data: {\"model\":\"a\",\"error\":{\"code\":502,\"message\":\"gone\"},\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\n", wire.Tallied{
			Model: "a", Failure: text(`{"code":502,"message":"gone"}`),
		}},
		{"vLLM", llm.Chat, "data: {\"object\":\"error\",\"message\":\"too long\",\"code\":400}\n\ndata: [DONE]\n\n", wire.Tallied{
			Whole: true, Failure: text(`{"object":"error","message":"too long","code":400}`),
		}},
		{"llama.cpp", llm.Chat, "error: {\"code\":500,\"message\":\"slot\"}\n\n", wire.Tallied{Failure: text(`{"code":500,"message":"slot"}`)}},
		{"of a choice", llm.Chat, `{"choices":[{"error":{"code":429},"message":{"content":"ab"}}]}`, wire.Tallied{Whole: true, Failure: text(`{"code":429}`), Text: 2}},
		{"text", llm.Chat, "event: error\ndata: the \"server\" is gone\n\n", wire.Tallied{Failure: text(`"the \"server\" is gone"`)}},
		{"the first one", llm.Chat, "data: {\"error\":\"a\"}\n\ndata: {\"error\":\"b\"}\n\n", wire.Tallied{Failure: text(`"a"`)}},
		{"none", llm.Chat, "data: {\"error\":null}\n\ndata: {\"error\":{}}\n\ndata: {\"error\":\"\"}\n\n", wire.Tallied{}},
		{"responses", llm.Responses, "data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"x\"},\"usage\":null}}\n\n", wire.Tallied{
			Whole: true, Failure: text(`{"code":"server_error","message":"x"}`),
		}},
		{"responses' event", llm.Responses, "event: error\ndata: {\"type\":\"error\",\"code\":\"c\",\"message\":\"x\",\"param\":null}\n\n", wire.Tallied{
			Failure: text(`{"type":"error","code":"c","message":"x","param":null}`),
		}},
		{"response in one piece", llm.Responses, `{"object":"response","status":"cancelled","error":null,"output":[]}`, wire.Tallied{Whole: true, Failure: text(`{"status":"cancelled"}`)}},
		{"Gemini", llm.Gemini, `[{"error":{"code":503,"status":"UNAVAILABLE"}}]`, wire.Tallied{Whole: true, Failure: text(`{"code":503,"status":"UNAVAILABLE"}`)}},
	}
}

func TestAnswersOfServers(t *testing.T) {
	t.Parallel()
	for _, c := range append(answers(), failures()...) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for cut := range len(c.text) {
				if got := tallied(t, c.api, "", c.text[:cut], c.text[cut:]); !reflect.DeepEqual(got, c.want) {
					t.Fatalf("cut at %d\n got %s\nwant %s", cut, show(got), show(c.want))
				}
			}
			if got := tallied(t, c.api, "", strings.Split(c.text, "")...); !reflect.DeepEqual(got, c.want) {
				t.Errorf("byte by byte\n got %s", show(got))
			}
		})
	}
}

func TestWhatIsTooLongIsPassedOver(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	long := strings.Repeat("x", 9*mib)
	usage := `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}` + "\n\n"
	want := wire.Tallied{Usage: &llm.Usage{Prompt: 1, Completion: 2}}
	for name, text := range map[string]string{
		"line":     `data: {"choices":[{"delta":{"content":"` + long + "\"}}]}\n\n" + usage,
		"comment":  ":" + long + "\n" + usage,
		"many":     strings.Repeat("data: "+long[:3*mib]+"\n", 4) + "\n" + usage,
		"failures": "data: {\"error\":{\"x\":\"" + long + "\n\n" + usage,
	} {
		for _, size := range []int{len(text), 100_000} {
			if got := tallied(t, llm.Chat, "", pieces(text, size)...); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s", name, show(got))
			}
		}
	}

	document := `{"usage":{"prompt_tokens":1},"x":"` + strings.Repeat("x", 32*mib) + `"}`
	list := `[` + document + `,{"usageMetadata":{"promptTokenCount":1}}]`
	got := tallied(t, llm.Chat, "", pieces(document, 1_000_000)...)
	if want := (wire.Tallied{Text: int64(len(document))}); !reflect.DeepEqual(got, want) {
		t.Errorf("document: %s", show(got))
	}
	got = tallied(t, llm.Gemini, "", pieces(list, 1_000_000)...)
	if want := (wire.Tallied{Usage: &llm.Usage{Prompt: 1}, Whole: true}); !reflect.DeepEqual(got, want) {
		t.Errorf("list: %s", show(got))
	}

	fail := wire.NewTally(llm.Chat, "")
	_, _ = fail.Write([]byte(`data: {"error":{"message":"` + long[:mib] + `"}}`))
	if got := fail.Result().Failure; len(got) > 20<<10 || !json.Valid(got) || !strings.HasPrefix(string(got), `"{\"message\"`) {
		t.Errorf("%d bytes of failure: %.50s", len(got), got)
	}
}

func pieces(text string, size int) []string {
	var out []string
	for len(text) > size {
		out, text = append(out, text[:size]), text[size:]
	}
	return append(out, text)
}

func TestListsMustBeWhole(t *testing.T) {
	t.Parallel()
	for text, whole := range map[string]bool{
		`[]`: true, "[ {} ,\n{}\n] \n": true, `[`: false, `[{}`: false, `[{}}`: false, `[{}]x`: false, `[{},{"a":}]`: false, `[{}] ]`: false,
	} {
		if got := tallied(t, llm.Gemini, "application/json", text); got.Whole != whole {
			t.Errorf("%s: whole %v", text, got.Whole)
		}
	}
}

func TestWhatIsWrittenAfterTheResultDoesNotCount(t *testing.T) {
	t.Parallel()
	for _, c := range answers() {
		tally := wire.NewTally(c.api, "")
		_, _ = tally.Write([]byte(c.text))
		tally.Result()
		_, _ = tally.Write([]byte(c.text))
		if got := tally.Result(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %s", c.name, show(got))
		}
	}
}

// However an answer is cut, what is read of it is the same.
func FuzzTally(f *testing.F) {
	for i, c := range append(answers(), failures()...) {
		f.Add([]byte(c.text), uint8(i), uint16(7))
	}
	apis := []llm.API{llm.Chat, llm.Responses, llm.Anthropic, llm.Gemini}
	f.Fuzz(func(t *testing.T, data []byte, which uint8, size uint16) {
		api := apis[which%4]
		contentType := ""
		if which >= 128 {
			contentType = "application/json"
		}
		want := tallied(t, api, contentType, string(data))
		got := tallied(t, api, contentType, pieces(string(data), int(size)+1)...)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("in pieces %s\nin one %s", show(got), show(want))
		}
		if want.Failure != nil && !json.Valid(want.Failure) {
			t.Errorf("failure %s", want.Failure)
		}
		if want.Text < 0 || want.Text > int64(len(data)) {
			t.Errorf("%d bytes of text in %d", want.Text, len(data))
		}
	})
}
