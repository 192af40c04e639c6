package llm

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/internal/suggest"
	"github.com/proctor-run/proctor/value"
)

// provider is how the models of one name before the slash are reached (Harbor's agents,
// sections 3.4 and 5.7).
type provider struct {
	api API
	// keys and bases are variables, the first one that is set counts. The general ones,
	// <NAME>_API_KEY, <NAME>_BASE_URL and <NAME>_API_BASE, come after them.
	keys, bases []string
	// base is the provider's address; empty where the protocol is the provider's own, and
	// for servers without one.
	base string
	// own servers are somebody's own: they need an address or have one on this machine,
	// and no key.
	own bool
	// version is the path of the protocol's version, for bases that may lack it.
	version string
}

// bearerVariable has a token of Anthropic's that is no key, and is sent otherwise.
const bearerVariable = "ANTHROPIC_AUTH_TOKEN"

// providers are those whose protocol and address are known. One that is not here speaks
// OpenAI's chat completions at the address that is given.
var providers = map[string]provider{
	"openai":    {api: Chat, bases: []string{"OPENAI_BASE_URL", "OPENAI_API_BASE"}},
	"anthropic": {api: Anthropic, keys: []string{"ANTHROPIC_API_KEY", bearerVariable}},
	"gemini":    {api: Gemini, keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, bases: []string{"GOOGLE_GEMINI_BASE_URL"}},
	"google":    {api: Gemini, keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, bases: []string{"GOOGLE_GEMINI_BASE_URL"}},

	"openrouter":   {api: Chat, base: "https://openrouter.ai/api/v1"},
	"groq":         {api: Chat, base: "https://api.groq.com/openai/v1"},
	"deepseek":     {api: Chat, base: "https://api.deepseek.com/v1"},
	"mistral":      {api: Chat, base: "https://api.mistral.ai/v1"},
	"xai":          {api: Chat, base: "https://api.x.ai/v1"},
	"together_ai":  {api: Chat, keys: []string{"TOGETHERAI_API_KEY"}, base: "https://api.together.xyz/v1"},
	"fireworks_ai": {api: Chat, base: "https://api.fireworks.ai/inference/v1"},
	"cerebras":     {api: Chat, base: "https://api.cerebras.ai/v1"},
	"perplexity":   {api: Chat, keys: []string{"PERPLEXITYAI_API_KEY"}, base: "https://api.perplexity.ai"},
	"deepinfra":    {api: Chat, base: "https://api.deepinfra.com/v1/openai"},
	"nvidia_nim":   {api: Chat, base: "https://integrate.api.nvidia.com/v1"},

	"hosted_vllm": {api: Chat, own: true},
	"ollama":      {api: Chat, base: "http://127.0.0.1:11434/v1", own: true, version: "/v1"},
}

func providerOf(prefix string) provider {
	p, known := providers[prefix]
	if !known {
		p = provider{api: Chat, own: true}
	}
	return p
}

// Protocols are those in which the server of a model may be spoken to, its own first. A
// server of many models speaks Anthropic's messages besides, most often; of OpenAI's two
// each server of one has the other.
func Protocols(name string, o Options) []API {
	prefix, _, _ := strings.Cut(name, "/")
	api := providerOf(prefix).api
	if o.API != "" {
		api = o.API
	}
	switch {
	case api == Responses:
		return []API{Responses, Chat}
	case api == Chat && prefix == "openai":
		return []API{Chat, Responses}
	case api == Chat:
		return []API{Chat, Responses, Anthropic}
	}
	return []API{api}
}

// endpoint finds where and how a model is called.
func (c *Client) endpoint(name string, o Options) (Endpoint, error) {
	if strings.Contains(strings.ToLower(name), hosted) {
		if err := checkHosted(name, o.Info); err != nil {
			return Endpoint{}, err
		}
	}
	prefix, model, ok := strings.Cut(name, "/")
	if !ok || prefix == "" || model == "" {
		return Endpoint{}, c.nameError(name)
	}
	p := providerOf(prefix)
	if err := p.speak(name, o.API); err != nil {
		return Endpoint{}, err
	}
	e := Endpoint{Name: name, Model: model, API: p.api, HTTP: c.http(), Now: clock.Or(c.Now), Info: c.known(name)}
	if o.Info != nil {
		if err := e.Info.read(o.Info); err != nil {
			return Endpoint{}, exception.Errorf(exception.ValueError, "the model_info of model %s: %w", name, err)
		}
	}
	err := c.address(&e, prefix, p, o)
	return e, err
}

// speak has the provider speak another protocol than its own, where one is asked for.
func (p *provider) speak(name string, api API) error {
	switch api {
	case "":
	case Chat, Responses, Anthropic, Gemini:
		p.api = api
	default:
		return exception.Errorf(exception.ValueError, "the protocol of model %s is %q, want chat, responses, anthropic or gemini", name, api)
	}
	return nil
}

// address finds the server and the key.
func (c *Client) address(e *Endpoint, prefix string, p provider, o Options) error {
	vars := variables{env: o.Env, host: c.lookup}
	var given bool
	if e.Base, given = vars.base(prefix, p, o.Base); e.Base == "" && p.own {
		return c.unknownProvider(e.Name, prefix)
	}
	if given {
		if err := checkBase(e.Name, e.Base); err != nil {
			return err
		}
	}
	asked := p.keyVariables(prefix)
	var from string
	if e.Key, from = vars.first(asked); e.Key == "" && !p.own && !given {
		return &Error{Kind: Auth, Model: e.Name, Message: "there is no key: set " + asked[0] + ", or --ae " + asked[0] + "=…"}
	}
	e.Bearer = from == bearerVariable
	return nil
}

// KeyVariables are the variables that may hold the key of a model's provider.
func KeyVariables(name string) []string {
	prefix, _, ok := strings.Cut(name, "/")
	if !ok {
		return nil
	}
	return providers[prefix].keyVariables(prefix)
}

// BaseVariables are the variables that may hold the address of a model's server.
func BaseVariables(name string) []string {
	prefix, _, ok := strings.Cut(name, "/")
	if !ok {
		return nil
	}
	return providers[prefix].baseVariables(prefix)
}

func (p provider) baseVariables(prefix string) []string {
	return append(slices.Clone(p.bases), upper(prefix)+"_BASE_URL", upper(prefix)+"_API_BASE")
}

func (p provider) keyVariables(prefix string) []string {
	if len(p.keys) > 0 {
		return slices.Clone(p.keys)
	}
	return []string{upper(prefix) + "_API_KEY"}
}

// known is what the tables say of a model.
func (c *Client) known(name string) Info {
	info, ok := c.Known.Find(name)
	if !ok {
		info, _ = KnownModels().Find(name)
	}
	if info.Prices != nil { // it is changed by what the configuration says
		own := *info.Prices
		info.Prices = &own
	}
	return info
}

// nameError is that of a name without a provider.
func (c *Client) nameError(name string) error {
	hint := ""
	for _, known := range KnownModels().Names() {
		if _, model, _ := strings.Cut(known, "/"); model == name {
			hint = ": did you mean " + known + "?"
			break
		}
	}
	return exception.Errorf(exception.ValueError, "model %q has no provider, want provider/model, for example anthropic/claude-sonnet-4-5%s", name, hint)
}

func (c *Client) unknownProvider(name, prefix string) error {
	if _, known := providers[prefix]; known {
		return exception.Errorf(exception.ValueError, "model %s needs the address of its server: give it as --ak api_base=http://…/v1, or set %s", name, upper(prefix)+"_API_BASE")
	}
	var names []string
	for p := range providers {
		names = append(names, p)
	}
	slices.Sort(names)
	hint := suggest.DidYouMean("; ", suggest.Nearest(prefix, names))
	return exception.Errorf(exception.ValueError, "provider %q of model %s is not known%s; for any server that speaks OpenAI's chat completions give its address as --ak api_base=http://…/v1", prefix, name, hint)
}

func checkBase(name, base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return exception.New(exception.ValueError, "the address of the server of model "+name+" is not an http:// or https:// address without user, query and fragment")
	}
	return nil
}

// variables finds keys and addresses: among the agent's own variables, then the host's.
type variables struct {
	env  []string
	host func(string) (string, bool)
}

// first is the first of the variables that is set, and its name.
func (v variables) first(names []string) (text, name string) {
	for _, name := range names {
		for _, assignment := range slices.Backward(v.env) {
			if key, text, ok := strings.Cut(assignment, "="); ok && key == name && text != "" {
				return text, name
			}
		}
	}
	for _, name := range names {
		if text, ok := v.host(name); ok && text != "" {
			return text, name
		}
	}
	return "", ""
}

// base is the address of a provider; given reports whether somebody named it.
func (v variables) base(prefix string, p provider, asked string) (base string, given bool) {
	base = asked
	if base == "" {
		base, _ = v.first(p.baseVariables(prefix))
	}
	if base == "" {
		return p.base, false
	}
	base = strings.TrimRight(base, "/")
	if p.version != "" && !strings.HasSuffix(base, p.version) {
		base += p.version
	}
	return base, true
}

// upper is a provider's name as its variables begin.
func upper(prefix string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, prefix)
}

// hosted is the provider whose models nobody but their operator knows.
const hosted = "hosted_vllm"

var hostedName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// checkHosted checks the name of a model on a vLLM server of one's own, and that its limits
// and prices are given (Harbor's agents, section 5.5).
func checkHosted(name string, info *value.Object) error {
	bare, ok := strings.CutPrefix(name, hosted+"/")
	switch {
	case !ok:
		return exception.Errorf(exception.ValueError, "model %q must start with '%s/'", name, hosted)
	case strings.Contains(bare, "/"):
		return exception.Errorf(exception.ValueError, "model %q must have exactly one '/'", name)
	case !hostedName.MatchString(bare):
		return exception.Errorf(exception.ValueError, "model %q: canonical model names have 1 to 64 letters, digits, dots, underscores and hyphens", name)
	case info == nil:
		return exception.Errorf(exception.ValueError, "models of %s require `model_info`: --ak model_info='{\"max_input_tokens\": …, \"max_output_tokens\": …, \"input_cost_per_token\": …, \"output_cost_per_token\": …}'", hosted)
	}
	for _, member := range []string{"max_input_tokens", "max_output_tokens", "input_cost_per_token", "output_cost_per_token"} {
		f, err := number(info, member)
		switch {
		case err != nil:
			return err
		case f == nil:
			return exception.Errorf(exception.ValueError, "the model_info of model %s is missing '%s'", name, member)
		}
	}
	return nil
}
