package gateway

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
)

// fetched is the name of a member whose address the provider would fetch to answer a request;
// empty for none. Names count in any case: some servers read them so.
func fetched(api llm.API, asked *wire.Request) string {
	found := ""
	asked.Texts(
		func(path [][]byte) bool { return ownWords(api, path) },
		func(path [][]byte, text json.RawMessage) bool {
			if len(path) == 0 || !fetches(path, text) {
				return true
			}
			found = string(path[len(path)-1])
			return false
		})
	return found
}

// ownWords tells of a member that what is in it are names of a caller's own, and nothing that
// a provider reads: definitions and schemas, the arguments of tools and what these returned.
func ownWords(api llm.API, path [][]byte) bool {
	last := string(path[len(path)-1])
	if len(path) == 1 {
		return defines(last)
	}
	in := string(path[len(path)-2])
	switch api {
	case llm.Anthropic:
		return last == "input"
	case llm.Gemini:
		return ownWordsOfGemini(in, last)
	case llm.Responses:
		return last == "env" && in == "action"
	case llm.Chat: // has them as text
	}
	return false
}

// defines tells of a member of a request that it is about tools, schemas or the caller.
func defines(name string) bool {
	switch name {
	case toolsMember, "functions", "response_format", "generationConfig", "generation_config", "output_config", "output_format", "metadata", "text":
		return true
	}
	return false
}

func ownWordsOfGemini(in, last string) bool {
	switch in {
	case "functionCall", "function_call":
		return last == "args"
	case "functionResponse", "function_response":
		return last == "response"
	case nestedMember, nestedSnake:
		return defines(last)
	}
	return false
}

// fetches tells of a text whether it makes a provider fetch something.
func fetches(path [][]byte, text json.RawMessage) bool {
	last, in := path[len(path)-1], []byte(nil)
	if len(path) > 1 {
		in = path[len(path)-2]
	}
	switch {
	case addressed(last), is(last, "url") && (addressed(in) || is(in, "source")):
		return !inline(wire.Meant(text))
	case is(last, "type") && is(in, "source"):
		return is(bytes.TrimSpace(wire.Meant(text)), "url")
	case is(last, "file_data"), is(last, "image"), is(last, "video"), is(last, "audio"), is(last, "data") && is(in, "input_audio"):
		// What is in it is base64, in which no colon is.
		meant := wire.Meant(text)
		return !inline(meant) && bytes.Contains(meant, []byte("://"))
	}
	return false
}

// addressed tells of the name of a member that what is in it is an address.
func addressed(name []byte) bool {
	for _, known := range []string{"image_url", "video_url", "audio_url", "file_url", "document_url", "server_url", "fileUri", "file_uri"} {
		if is(name, known) {
			return true
		}
	}
	return false
}

func is(name []byte, known string) bool {
	// No letter of these names has another case that takes fewer bytes.
	return len(name) >= len(known) && strings.EqualFold(string(name), known)
}

// inline tells of an address that what it is about is in it.
func inline(address []byte) bool {
	const scheme = "data:"
	address = bytes.TrimLeft(address, "\x00\t\n\v\f\r ")
	return len(address) == 0 || len(address) >= len(scheme) && is(address[:len(scheme)], scheme)
}
