package installed

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/suggest"
	"github.com/proctor-run/proctor/internal/toml"
	"github.com/proctor-run/proctor/llm"
)

// Vars are what the templates of a definition can name.
type Vars struct {
	// Version is the one that was asked for, or the definition's.
	Version string
	// Prefix is the directory in the sandbox where the program was installed, Logs the log
	// directory there.
	Prefix, Logs string
	Model        ModelName
	// API is the protocol in which the model is spoken to; empty where the program finds its
	// model by itself. URL is the server's address with the protocol's version at its end,
	// as OpenAI's clients want it, Root the same without the version, as Anthropic's and
	// Google's do. Key is the key.
	API            llm.API
	URL, Root, Key string
	// Prices are in US dollars for a million tokens, Limits in tokens; 0 is unknown.
	Prices struct{ Input, Output, CacheRead float64 }
	Limits struct{ Input, Output int64 }
	// Flags are the settings that are flags, quoted for a shell.
	Flags string
	// Skills is the directory with the skills in the sandbox; empty for none.
	Skills string
	MCP    []agent.MCPServer
}

// ModelName is the name of a model and its parts.
type ModelName struct {
	// Full is the name as it was configured. Provider stands before the first slash, and is
	// empty where there is none; Name after it. Last stands after the last slash.
	Full, Provider, Name, Last string
}

func nameOf(model string) ModelName {
	m := ModelName{Full: model, Name: model, Last: model}
	if provider, name, ok := strings.Cut(model, "/"); ok {
		m.Provider, m.Name = provider, name
	}
	m.Last = model[strings.LastIndex(model, "/")+1:]
	return m
}

// withModel has how the model is reached, in the first of the program's protocols that is
// spoken there.
func (v *Vars) withModel(m *agent.ModelAccess, speaks []llm.API) {
	if m == nil {
		return
	}
	api, ok := common(speaks, m.APIs)
	if !ok {
		return
	}
	v.API, v.Key = api, m.Key
	v.URL, v.Root = m.Addresses(api)
	v.Limits.Input, v.Limits.Output = m.Info.InputLimit, m.Info.OutputLimit
	if p := m.Info.Prices; p != nil {
		v.Prices.Input, v.Prices.Output, v.Prices.CacheRead = perMillion(p.Input), perMillion(p.Output), perMillion(p.Input)
		if p.CacheRead != nil {
			v.Prices.CacheRead = perMillion(*p.CacheRead)
		}
	}
}

// perMillion is the price of a million tokens, without the digits that the product alone
// has.
func perMillion(price float64) float64 {
	const million, digits = 1e6, 12
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(price*million, 'g', digits, 64), 64)
	if err != nil {
		return price * million
	}
	return rounded
}

// common is the first of the program's protocols that the server speaks.
func common(program, server []llm.API) (llm.API, bool) {
	for _, api := range program {
		for _, other := range server {
			if api == other {
				return api, true
			}
		}
	}
	return "", false
}

// renderer fills in templates. values are the settings that have one, known the names of
// all.
type renderer struct {
	vars   Vars
	values map[string]string
	known  []string
}

func (r *renderer) functions() template.FuncMap {
	return template.FuncMap{
		"json": func(v any) (string, error) {
			text, err := json.Marshal(v)
			return string(text), err
		},
		"toml":    toml.QuoteString,
		"quote":   harbor.Linux.Quote,
		"setting": r.setting,
		"mcp":     func(form string) (string, error) { return mcpServers(form, r.vars.MCP) },
	}
}

// setting is the value of a setting, empty where it has none.
func (r *renderer) setting(name string) (string, error) {
	if slices.Contains(r.known, name) {
		return r.values[name], nil
	}
	return "", fmt.Errorf("there is no setting %q%s", name, suggest.DidYouMean(": ", suggest.Nearest(name, r.known)))
}

func (d *Definition) settingNames() []string {
	names := slices.Clone(ownSettings)
	for _, s := range d.settings {
		names = append(names, s.Name)
	}
	return names
}

func (r *renderer) render(name, text string) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	t, err := template.New(name).Option("missingkey=error").Funcs(r.functions()).Parse(text)
	if err != nil {
		return "", plain(err)
	}
	var out strings.Builder
	if err := t.Execute(&out, r.vars); err != nil {
		return "", plain(err)
	}
	return out.String(), nil
}

// templatePlace is what package template says of the place: the name that it is given here
// is a place already.
var templatePlace = regexp.MustCompile(`^template: (.*?):(\d+)(?::\d+)?: (?:executing "[^"]*" at )?`)

// plain is an error of a template with its line.
func plain(err error) error {
	text := templatePlace.ReplaceAllString(err.Error(), "$1: line $2 of the template: ")
	return errors.New(text)
}

// templates are the templates of a definition with their places.
func (d *Definition) templates() [][2]string {
	all := [][2]string{{"[run] command", d.Run.Command}, {"[run] after", d.Run.After}, {"[install] script", d.Install.Script}}
	for _, p := range d.Install.NPM {
		all = append(all, [2]string{"[install] npm", p})
	}
	for _, v := range d.Run.Env {
		all = append(all, [2]string{"[run.env] " + v.Name, v.Value})
	}
	for _, f := range d.Files {
		all = append(all, [2]string{"[[file]] " + f.Path, f.Content})
	}
	return all
}

// templates refuses templates that cannot be filled in, in any protocol of the program,
// with nothing but what each trial has, and with everything that one can have.
func (r *reader) templates(d *Definition) {
	apis := d.Model.APIs
	if len(apis) == 0 {
		apis = []llm.API{""}
	}
	for _, api := range apis {
		least := renderer{known: d.settingNames(), vars: Vars{
			Version: "1.0", Prefix: "/p", Logs: harbor.AgentLogsDir, Model: nameOf("a/b"), API: api, URL: "u", Root: "r", Key: "k",
		}}
		most := least
		most.vars.Flags, most.vars.Skills = "--f", "/s"
		most.vars.Prices.Input, most.vars.Prices.Output, most.vars.Prices.CacheRead = 1, 2, 0.5
		most.vars.Limits.Input, most.vars.Limits.Output = 1, 2
		most.vars.MCP = []agent.MCPServer{
			{Name: "a", Transport: stdio, Command: "c", Args: []string{"x"}}, {Name: "b", Transport: streamable, URL: "u"}, {Name: "c", Transport: "sse", URL: "u"},
		}
		for _, sample := range []*renderer{&least, &most} {
			for _, t := range d.templates() {
				if _, err := sample.render(t[0], t[1]); err != nil && r.err == nil {
					r.err = fmt.Errorf("%s: %w", r.file, err)
				}
			}
		}
	}
}
