package agent

import (
	"math"
	"slices"

	"github.com/proctor-run/proctor/internal/suggest"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

// Settings of agents that call a model themselves (Harbor agent format, section 4.1).
const (
	baseSetting        = "api_base"
	apiSetting         = "api"
	infoSetting        = "model_info"
	temperatureSetting = "temperature"
	effortSetting      = "reasoning_effort"
	thinkingSetting    = "max_thinking_tokens"
)

// GatewaySettings are the settings of every agent whose commands may call a model.
// [Config.Route] reads them.
func GatewaySettings() []Setting {
	return []Setting{
		{Name: baseSetting, Summary: "the address of the server, up to the version: `http://127.0.0.1:8000/v1`", Text: true},
		{Name: apiSetting, Summary: "the protocol of the server: `chat`, `responses`, `anthropic` or `gemini`; the provider's own unless given", Text: true},
		{Name: infoSetting, Summary: "limits and prices of the model, a JSON object: `max_input_tokens`, `max_output_tokens`, `input_cost_per_token`, `output_cost_per_token`"},
	}
}

// ModelSettings are the settings of every agent that calls a model itself. [Config.OpenModel]
// and [Config.Sampling] read them.
func ModelSettings() []Setting {
	return append(GatewaySettings(),
		Setting{Name: temperatureSetting, Summary: "the sampling temperature; the provider's own unless given"},
		Setting{Name: effortSetting, Summary: "how much the model thinks: `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max` or `default`", Text: true},
		Setting{Name: thinkingSetting, Summary: "how many tokens the model may think with, where that is how it is bounded; at least 1024"},
	)
}

// OpenModel opens the model of the configuration. It makes no call.
func (c Config) OpenModel() (llm.Model, error) {
	o, err := c.ModelOptions()
	switch {
	case err != nil:
		return nil, err
	case c.Model == "":
		return nil, modelMissing(c)
	case c.Models == nil:
		return nil, invalidf("agent %s: this program gives its agents no models", c.Name)
	}
	return c.Models.Open(c.Model, o)
}

// Route finds the way to the model of the configuration, for calls that are passed on. It
// makes no call.
func (c Config) Route() (*llm.Route, error) {
	o, err := c.ModelOptions()
	if err != nil {
		return nil, err
	}
	router, ok := c.Models.(llm.Router)
	switch {
	case c.Model == "":
		return nil, modelMissing(c)
	case !ok:
		return nil, invalidf("agent %s: this program passes on no calls of models", c.Name)
	}
	return router.Route(c.Model, o)
}

// ModelOptions are how the model of the configuration is opened.
func (c Config) ModelOptions() (llm.Options, error) {
	o := llm.Options{Base: c.Text(baseSetting), API: llm.API(c.Text(apiSetting)), Env: c.Env}
	switch info := c.Setting(infoSetting).(type) {
	case nil, value.Null:
	case *value.Object:
		o.Info = info
	default:
		return o, invalidf("agent %s: setting %s is %s, want a JSON object", c.Name, infoSetting, value.Repr(info))
	}
	return o, nil
}

func modelMissing(c Config) error {
	return invalidf("agent %s needs a model: give it as -m provider/model", c.Name)
}

var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max", "default"}

// minThinking is the least that is asked for, and maxThinking the most that may be, in
// tokens.
const (
	minThinking = 1024
	maxThinking = 1 << 40
)

// Sampling returns a request with what the configuration says of how a model answers,
// and no messages.
func (c Config) Sampling() (llm.Request, error) {
	var r llm.Request
	if v := c.Setting(temperatureSetting); !value.IsNull(v) {
		n, ok := v.(value.Number)
		if !ok {
			return r, invalidf("agent %s: setting %s is %s, want a number", c.Name, temperatureSetting, value.Repr(v))
		}
		f, err := value.ToFloat(n)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
			return r, invalidf("agent %s: setting %s is %s, want a number that is not negative", c.Name, temperatureSetting, value.Repr(v))
		}
		r.Temperature = &f
	}
	if r.Effort = c.Text(effortSetting); r.Effort != "" && !slices.Contains(efforts, r.Effort) {
		return r, invalidf("agent %s: setting %s is %q%s, want one of %q", c.Name, effortSetting, r.Effort, suggest.DidYouMean(": ", suggest.Nearest(r.Effort, efforts)), efforts)
	}
	tokens, err := c.Whole(thinkingSetting, 0, maxThinking, -1)
	if tokens >= 0 {
		r.ThinkingTokens = max(tokens, minThinking)
	}
	return r, err
}
