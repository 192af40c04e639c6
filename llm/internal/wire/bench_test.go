package wire_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
)

// longStreams are streams of about a megabyte, in pieces as a network brings them.
func longStreams() map[llm.API][][]byte {
	const word = "some words of the answer, \\\"quoted\\\" and not; "
	repeat := func(n int, event string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, event, i, word)
		}
		return b.String()
	}
	texts := map[llm.API]string{
		llm.Chat: repeat(3500, `data: {"id":"chatcmpl-%d","object":"chat.completion.chunk","created":1767225600,"model":"gpt-x","service_tier":"default",`+
			`"system_fingerprint":"fp_1234567890","choices":[{"index":0,"delta":{"content":"%s"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"a1b2c3"}`+"\n\n") +
			openaiStream,
		llm.Anthropic: repeat(5500, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":%d,\"delta\":{\"type\":\"text_delta\",\"text\":\"%s\"}}\n\n") +
			anthropicStream,
		llm.Responses: repeat(4000, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":%d,\"item_id\":\"msg_1234567890\","+
			"\"output_index\":0,\"content_index\":0,\"delta\":\"%s\",\"logprobs\":[]}\n\n") + responsesStream,
		llm.Gemini: repeat(2500, `data: {"responseId":"r%d","candidates":[{"content":{"parts":[{"text":"%s"}],"role":"model"},"index":0}],`+
			`"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":2,"totalTokenCount":12,"promptTokensDetails":[{"modality":"TEXT","tokenCount":10}]},"modelVersion":"gemini-x"}`+"\r\n\r\n") +
			geminiStream,
	}
	out := map[llm.API][][]byte{}
	for api, text := range texts {
		for _, p := range pieces(text, 1400) {
			out[api] = append(out[api], []byte(p))
		}
	}
	return out
}

func benchmarkStream(b *testing.B, stream [][]byte, open func() io.Writer, done func(io.Writer) bool) {
	n := 0
	for _, p := range stream {
		n += len(p)
	}
	b.SetBytes(int64(n))
	b.ReportAllocs()
	for b.Loop() {
		w := open()
		for _, p := range stream {
			if _, err := w.Write(p); err != nil {
				b.Fatal(err)
			}
		}
		if !done(w) {
			b.Fatal("the stream was not read")
		}
	}
}

func BenchmarkTally(b *testing.B) {
	for api, stream := range longStreams() {
		b.Run(string(api), func(b *testing.B) {
			benchmarkStream(b, stream, func() io.Writer { return wire.NewTally(api, "text/event-stream") },
				func(w io.Writer) bool { r := w.(*wire.Tally).Result(); return r.Usage != nil && r.Whole })
		})
	}
}

func BenchmarkUsageFilter(b *testing.B) {
	benchmarkStream(b, longStreams()[llm.Chat], func() io.Writer { return wire.NewUsageFilter(io.Discard) },
		func(w io.Writer) bool { return w.(*wire.UsageFilter).Flush() == nil })
}

func BenchmarkAskForUsage(b *testing.B) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(`a word of \"text\" `, 60_000) + `"}],"stream":true}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, asked, err := askForUsage(body); !asked || err != nil {
			b.Fatal(asked, err)
		}
	}
}

// longRequest is a request of about 300 KB with many messages, as agents send them.
func longRequest() []byte {
	var b strings.Builder
	b.WriteString(`{"model":"m","stream":true,"messages":[{"role":"user","content":"Hi."}`)
	for i := 0; b.Len() < 300<<10; i++ {
		fmt.Fprintf(&b, `,{"role":"assistant","tool_calls":[{"id":"c%d","type":"function","function":{"name":"f","arguments":"{\"path\":\"a.go\"}"}}]}`, i)
		fmt.Fprintf(&b, `,{"role":"tool","tool_call_id":"c%d","content":"%s"}`, i, strings.Repeat(`if err != nil {\n\treturn \"wrapped\", err\n}\n`, 40))
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

func BenchmarkReadRequest(b *testing.B) {
	body := longRequest()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.ReadRequest(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTexts(b *testing.B) {
	body := longRequest()
	r, err := wire.ReadRequest(body)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		r.Texts(func([][]byte) bool { return false }, func([][]byte, json.RawMessage) bool { n++; return true })
		if n == 0 {
			b.Fatal("there are none")
		}
	}
}
