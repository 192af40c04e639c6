package mcp

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/proctor-run/proctor/internal/bounded"
)

// promptName is the name of the prompt that is the first observation.
const promptName = "task"

// newServer returns the server of a player. The list of tools of the kit's server is sorted
// and known beforehand: the middleware answers in its place.
func newServer(o Options, p *Player) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: o.Name, Version: o.Version}, &sdk.ServerOptions{
		Capabilities: &sdk.ServerCapabilities{
			Tools:   &sdk.ToolCapabilities{ListChanged: true},
			Prompts: &sdk.PromptCapabilities{},
		},
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { *c = notCached },
	})
	s.AddPrompt(&sdk.Prompt{Name: promptName, Description: "What is to be done."}, p.getPrompt)
	p.addTurn(s)
	s.AddReceivingMiddleware(p.receive)
	return s
}

// notCached is what others may keep of a list: nothing, as it is that of one episode at
// one moment.
var notCached = sdk.Cacheable{CacheScope: "private"}

// addTurn adds the one tool that the kit's server knows: it stands for all, is never
// listed and cannot be called by its name. Adding it again tells the clients that listen
// that there are other tools, for which the kit has no other way.
func (p *Player) addTurn(s *sdk.Server) {
	s.AddTool(&sdk.Tool{Name: turnName, InputSchema: json.RawMessage(anyObject)}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		name, ok := ctx.Value(nameKey{}).(string)
		if !ok {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the tool was not named"}
		}
		return p.do(ctx, name, string(req.Params.Arguments), arrival(ctx))
	})
}

const turnName = "turn"

// nameKey is where a request that goes to the tool turn has the name of the tool that is
// called.
type nameKey struct{}

// receive handles the requests that have to do with the task.
func (p *Player) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		ctx, release := p.onLine(ctx, req)
		defer release()
		switch r := req.(type) {
		case *sdk.CallToolRequest:
			ctx = context.WithValue(ctx, nameKey{}, r.Params.Name)
			r.Params.Name = turnName
		case *sdk.ListToolsRequest:
			return p.listTools(ctx, r)
		case *sdk.ListPromptsRequest:
			if err := p.begun(ctx); err != nil {
				return nil, err
			}
		}
		if method != "initialize" && method != "server/discover" {
			return next(ctx, method, req)
		}
		if err := p.begun(ctx); err != nil {
			return nil, err
		}
		res, err := next(ctx, method, req)
		p.mu.Lock()
		defer p.mu.Unlock()
		switch res := res.(type) {
		case *sdk.InitializeResult:
			if res != nil {
				res.Instructions = p.instructions
			}
		case *sdk.DiscoverResult:
			if res != nil {
				res.Instructions = p.instructions
			}
		}
		return res, err
	}
}

func (p *Player) listTools(ctx context.Context, req *sdk.ListToolsRequest) (sdk.Result, error) {
	if req.Params != nil && req.Params.Cursor != "" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is one page only"}
	}
	if err := p.begun(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	list := append([]*sdk.Tool{}, p.tools...) // not nil, which would be null
	return &sdk.ListToolsResult{Tools: list, Cacheable: notCached}, nil
}

func (p *Player) getPrompt(ctx context.Context, _ *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
	if err := p.begun(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.prompt == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: errNoTask.Error()}
	}
	return &sdk.GetPromptResult{Messages: p.prompt}, nil
}

// unsupported is the error for a revision of the protocol that is not served; nil for one
// that is.
func unsupported(version string) *jsonrpc.Error {
	served := sdk.SupportedProtocolVersions()
	if slices.Contains(served, version) {
		return nil
	}
	data, err := json.Marshal(sdk.UnsupportedProtocolVersionData{Supported: served, Requested: bounded.Head(version, maxShownName)})
	if err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	return &jsonrpc.Error{Code: sdk.CodeUnsupportedProtocolVersion, Message: "unsupported protocol version", Data: data}
}

// errorLine is an error as a message; one that answers no request has no id.
func errorLine(id jsonrpc.ID, failed *jsonrpc.Error) []byte {
	if !id.IsValid() {
		line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": failed})
		if err != nil {
			return nil
		}
		return line
	}
	line, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: id, Error: failed})
	if err != nil {
		return nil
	}
	return line
}
