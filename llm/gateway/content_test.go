package gateway_test

import (
	"strings"
	"testing"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/gateway"
)

// content is a request with something in the place of its content.
func content(api llm.API, what string) (path, body string) {
	switch api {
	case llm.Chat:
		return "/v1/chat/completions", `{"model":"model","messages":[{"role":"user","content":[{"type":"text","text":"http://a.example"},` + what + `]}]}`
	case llm.Responses:
		return "/v1/responses", `{"model":"model","input":[{"role":"user","content":[` + what + `]}]}`
	case llm.Anthropic:
		return "/v1/messages", `{"model":"model","max_tokens":9,"messages":[{"role":"user","content":[` + what + `]}]}`
	case llm.Gemini:
		return "/v1beta/models/model:generateContent", `{"contents":[{"role":"user","parts":[{"text":"Hi."},` + what + `]}]}`
	}
	return "", ""
}

// TestOfflineLeavesNoAddressToTheProvider: what it would fetch is a way to the network.
func TestOfflineLeavesNoAddressToTheProvider(t *testing.T) {
	t.Parallel()
	for api, cases := range map[llm.API]map[string]string{
		llm.Chat: {
			`{"type":"image_url","image_url":{"url":"http://x.example/?a"}}`:                                 "url",
			`{"type":"image_url","image_url":"https://x.example"}`:                                           "image_url",
			`{"type":"image_url","image_url":{"url":"http:\/\/x.example"}}`:                                  "url",
			`{"type":"image_url","im\u0061ge_url":{"\u0075rl":"\u0068ttp://x.example"}}`:                     "url",
			`{"type":"image_url","image_url":{"url":"data:,x","url":"//x.example"}}`:                         "url",
			`{"type":"image_url","Image_URL":{"URL":"HTTP:x.example"}}`:                                      "URL",
			`{"type":"image_url","image_url":[{"url":" file:///etc/passwd"}]}`:                               "url",
			`{"type":"file","file":{"file_data":"https://x.example/a.pdf"}}`:                                 "file_data",
			`{"type":"video_url","video_url":{"url":"https://x.example"}}`:                                   "url",
			`{"type":"video","video":["data:,","https://x.example"]}`:                                        "video",
			`{"type":"input_audio","input_audio":{"data":"https://x.example/a.wav"}}`:                        "data",
			`{"type":"document_url","document_url":"https://x.example"}`:                                     "document_url",
			`{"a":[[{"b":{},"c":[],"d":1,"e":null,"f":"{"}],[]],"image_url":"https://x.example"}`:            "image_url",
			`{"text":"\\\"","tools":[{"type":"function"}],"input":{"image_url":{"url":"http://x.example"}}}`: "url",
		},
		llm.Responses: {
			`{"type":"input_image","image_url":"https://x.example"}`:                                        "image_url",
			`{"type":"input_file","file_url":"https://x.example"}`:                                          "file_url",
			`{"type":"input_file","\u0066ile_url":"https://x.example"}`:                                     "file_url",
			`{"type":"function_call_output","output":[{"type":"input_image","image_url":"http://x"}]}`:      "image_url",
			`{"type":"tool_search_output","tools":[{"type":"mcp","server_url":"https://x.example"}]}`:       "server_url",
			`{"type":"function_call","arguments":"{}"},{"type":"input_file","file_url":"ftp://x.example/"}`: "file_url",
		},
		llm.Anthropic: {
			`{"type":"image","source":{"type":"url","url":"https://x.example"}}`:                                           "type",
			`{"type":"document","source":{"url":"https://x.example","type":"base64"}}`:                                     "url",
			`{"type":"document","\u0073ource":{"type":"base64","typ\u0065":"\u0075rl"}}`:                                   "type",
			`{"type":"tool_result","content":[{"type":"image","source":{"type":"url","url":"http://x"}}]}`:                 "type",
			`{"type":"tool_use","input":{"a":[{}]}},{"type":"image","source":{"type":"url","url":"http://x.example"}}`:     "type",
			`{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"url":"http://x"}}]}}`:     "url",
			`{"type":"tool_use","INPUT":{"source":{"type":"url"}}}`:                                                        "type",
			`{"input":1,"type":"image","source":{"media_type":"image/png","url":"https://x.example","data":"","type":""}}`: "url",
		},
		llm.Gemini: {
			`{"fileData":{"mimeType":"text/html","fileUri":"https://x.example"}}`:                               "fileUri",
			`{"file_data":{"file_uri":"https://x.example"}}`:                                                    "file_uri",
			`{"fileData":{"f\u0069leUri":"https://x.example"}}`:                                                 "fileUri",
			`{"functionCall":{"name":"f","args":{}},"fileData":{"fileUri":"gs://x"}}`:                           "fileUri",
			`{"args":{"fileData":{"fileUri":"https://x.example"}}}`:                                             "fileUri",
			`{"functionResponse":{"response":{},"parts":[{"fileData":{"fileUri":"https://www.youtube.com"}}]}}`: "fileUri",
		},
	} {
		for what, member := range cases {
			t.Run(string(api)+" "+what, func(t *testing.T) {
				t.Parallel()
				path, body := content(api, what)
				w, s := spied(t, api, func(g *gateway.Gateway) { g.Offline = true })
				got := post(t, w.url+path, w.Key, body)
				if got.status != 403 || !strings.Contains(got.body, `does not have the whole network, which \"`+member+`\" would be`) || len(s.all()) != 0 {
					t.Errorf("got %d %s", got.status, got.body)
				}
				w, s = spied(t, api, nil)
				if got := post(t, w.url+path, w.Key, body); got.status != 200 || len(s.all()) != 1 {
					t.Errorf("with the network: got %d %s", got.status, got.body)
				}
			})
		}
	}
}

// TestOfflineLeavesWhatIsInTheRequest: data, and names that only look like those of content.
func TestOfflineLeavesWhatIsInTheRequest(t *testing.T) {
	t.Parallel()
	schema := `{"type":"object","properties":{"file_url":{"type":"string","default":"http://a.example"},"source":{"type":"url"}}}`
	for api, cases := range map[llm.API][]string{
		llm.Chat: {
			`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}}`,
			`{"type":"file","file":{"file_data":"AAAA","filename":"http://a.example"}}`,
			`{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}`,
			`{"type":"text","text":"{\"image_url\":{\"url\":\"http://a.example\"}}"}`,
			`{"type":"image_url","image_url":null}]}],"tools":[{"type":"function","function":{"name":"f","parameters":` + schema + `}}],"x":[{"y":[1`,
		},
		llm.Responses: {
			`{"type":"input_image","image_url":"DATA:image/png;base64,AAAA"}`,
			`{"type":"function_call","arguments":"{\"file_url\":\"http://a.example\"}"}`,
			`{"type":"local_shell_call","action":{"command":["curl","http://a.example"],"env":{"file_url":"http://a.example"}}}`,
			`{"type":"input_text"}]}],"text":{"format":{"schema":` + schema + `}},"x":[{"y":[1`,
		},
		llm.Anthropic: {
			`{"type":"tool_use","name":"f","input":{"source":{"type":"url","url":"http://a.example"},"image_url":"http://a.example"}}`,
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`,
			`{"type":"search_result","source":"http://a.example","title":"url"}`,
			`{"type":"text"}]}],"tools":[{"name":"f","input_schema":` + schema + `}],"metadata":{"file_url":"http://a.example"},"x":[{"y":[1`,
		},
		llm.Gemini: {
			`{"functionCall":{"name":"f","args":{"fileData":{"fileUri":"http://a.example"}}}}`,
			`{"function_response":{"name":"f","response":{"file_uri":"http://a.example"}}}`,
			`{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`,
			`{"text":""}]}],"generationConfig":{"responseSchema":` + schema + `},"tools":[{"functionDeclarations":[{"parameters":` + schema + `}]}],"x":[{"y":[1`,
		},
	} {
		for _, what := range cases {
			t.Run(string(api)+" "+what, func(t *testing.T) {
				t.Parallel()
				path, body := content(api, what)
				w, s := spied(t, api, func(g *gateway.Gateway) { g.Offline = true })
				if got := post(t, w.url+path, w.Key, body); got.status != 200 || len(s.all()) != 1 || s.all()[0].body != body {
					t.Errorf("got %d %s", got.status, got.body)
				}
			})
		}
	}
}

// TestOfflineLeavesNoSearchToTheProvider: nor do servers of one's own, or routers, have one.
func TestOfflineLeavesNoSearchToTheProvider(t *testing.T) {
	t.Parallel()
	for member, want := range map[string]int{
		`"search_parameters":{"mode":"on"}`: 403, `"enable_search":true`: 403, `"enable_search":false`: 200, `"plugins":[{"id":"web"}]`: 403,
		`"data_sources":[{"type":"elasticsearch"}]`: 403, `"prompt":{"id":"pmpt_1"}`: 403, `"plugins":null`: 200, `"Plugins":[]`: 403,
		`"tools":[{"type":"namespace","tools":[{"type":"mcp"}]}]`: 403, `"tools":[{"t\u0079pe":"mcp"}]`: 403, `"tools":[{"Type":"mcp"}]`: 403,
		`"tools":[{"type":["mcp"]}]`: 403, `"tools":["mcp"]`: 403, `"tools":[null]`: 200, `"tools":[]`: 200,
	} {
		w, _ := spied(t, llm.Responses, func(g *gateway.Gateway) { g.Offline = true })
		if got := post(t, w.url+"/v1/responses", w.Key, `{"model":"model","input":"Hi.",`+member+`}`); got.status != want {
			t.Errorf("%s: got %d %s", member, got.status, got.body)
		}
	}
}

// TestOfflineHoldsForCountingToo: a provider may fetch what it counts.
func TestOfflineHoldsForCountingToo(t *testing.T) {
	t.Parallel()
	for api, c := range map[llm.API][2]string{
		llm.Anthropic: {"/v1/messages/count_tokens", `{"model":"model","messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"http://x"}}]}]}`},
		llm.Gemini:    {"/v1beta/models/model:countTokens", `{"generateContentRequest":{"contents":[{"parts":[{"fileData":{"fileUri":"https://x.example"}}]}],"tools":[{"functionDeclarations":[]}]}}`},
	} {
		w, s := spied(t, api, func(g *gateway.Gateway) { g.Offline = true })
		if got := post(t, w.url+c[0], w.Key, c[1]); got.status != 403 || len(s.all()) != 0 {
			t.Errorf("%s: got %d %s", api, got.status, got.body)
		}
	}
}
