package llm

import (
	_ "embed" // the table
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"sync"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/value"
)

// Cost is what a call costs that used this, in US dollars.
func (p *Prices) Cost(u Usage) float64 {
	if p.Above != nil && u.Prompt > p.AboveInput {
		p = p.Above
	}
	price := func(own *float64) float64 {
		if own != nil {
			return *own
		}
		return p.Input
	}
	return float64(u.Prompt-u.Cached-u.CacheWrite)*p.Input + float64(u.Cached)*price(p.CacheRead) +
		float64(u.CacheWrite)*price(p.CacheWrite) + float64(u.Completion)*p.Output
}

// Table are limits and prices of models, by their names.
type Table struct {
	// Date is the day of the table, YYYY-MM-DD; empty is unknown.
	Date   string
	models map[string]Info
}

//go:embed models.json
var knownModels []byte

// KnownModels is the table that comes with proctor: prices as their providers published
// them by its date.
var KnownModels = sync.OnceValue(func() *Table {
	t, err := ParseTable(knownModels)
	if err != nil {
		panic("llm: models.json: " + err.Error()) // a test reads it
	}
	return t
})

// ParseTable reads a table: a JSON object with the members "date" and "models", the latter
// an object of objects by "provider/model". Their members are those that Harbor's setting
// model_info has: max_input_tokens and max_output_tokens, input_cost_per_token,
// output_cost_per_token, cache_read_input_token_cost and cache_creation_input_token_cost,
// in US dollars. Where a prompt of more than above_input_tokens costs differently, "above"
// has those prices. Other members are ignored.
func ParseTable(data []byte) (*Table, error) {
	v, err := value.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("reading a table of models: %w", err)
	}
	doc, ok := v.(*value.Object)
	if !ok {
		return nil, errors.New("reading a table of models: expected an object with the member models")
	}
	models, ok := member(doc, "models").(*value.Object)
	if !ok {
		return nil, errors.New(`reading a table of models: expected the member "models", an object by "provider/model"`)
	}
	date, _ := member(doc, "date").(value.Str)
	t := &Table{Date: string(date), models: make(map[string]Info, models.Len())}
	for name, v := range models.All() {
		info, ok := v.(*value.Object)
		if !ok {
			return nil, fmt.Errorf("reading a table of models: %q: expected an object, got %s", name, value.Repr(v))
		}
		read := Info{Name: name}
		if err := read.read(info); err != nil {
			return nil, fmt.Errorf("reading a table of models: %q: %w", name, err)
		}
		t.models[name] = read
	}
	return t, nil
}

// Names returns the names of the models, sorted.
func (t *Table) Names() []string { return slices.Sorted(maps.Keys(t.models)) }

// dated is what providers add to a model's name for one of its versions.
var dated = regexp.MustCompile(`[-@](latest|\d{8}|\d{4}-\d{2}-\d{2})$`)

// Find returns what is known of a model; a version that is not in the table is what the
// name without its date is.
func (t *Table) Find(name string) (Info, bool) {
	if t == nil {
		return Info{}, false
	}
	info, ok := t.models[name]
	if !ok {
		info, ok = t.models[dated.ReplaceAllString(name, "")]
	}
	info.Name = name
	return info, ok
}

// read reads the members of a model_info. What is there takes the place of what was known.
func (i *Info) read(o *value.Object) error {
	limits := []struct {
		name string
		to   *int64
	}{{"max_input_tokens", &i.InputLimit}, {"max_output_tokens", &i.OutputLimit}}
	for _, m := range limits {
		f, err := number(o, m.name)
		if err != nil {
			return err
		}
		if f != nil {
			*m.to = int64(*f)
		}
	}
	prices, err := readPrices(o, i.Prices)
	if err != nil || prices == nil {
		return err
	}
	i.Prices = prices
	from, err := number(o, "above_input_tokens")
	if err != nil || from == nil {
		return err
	}
	above, ok := member(o, "above").(*value.Object)
	if !ok {
		return exception.Errorf(exception.ValueError, "above_input_tokens is given without an object above")
	}
	i.Prices.AboveInput = int64(*from)
	i.Prices.Above, err = readPrices(above, nil)
	return err
}

// readPrices reads prices over known ones, which may be nil; they need both input and
// output.
func readPrices(o *value.Object, known *Prices) (*Prices, error) {
	var found [4]*float64
	for i, name := range [...]string{"input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost", "cache_creation_input_token_cost"} {
		var err error
		if found[i], err = number(o, name); err != nil {
			return nil, err
		}
	}
	if found == [4]*float64{} {
		return known, nil
	}
	if (found[0] == nil || found[1] == nil) && known == nil {
		return nil, exception.Errorf(exception.ValueError, "input_cost_per_token and output_cost_per_token are given together or not at all")
	}
	p := Prices{}
	if known != nil {
		p = Prices{Input: known.Input, Output: known.Output, CacheRead: known.CacheRead, CacheWrite: known.CacheWrite}
	}
	for i, to := range []*float64{&p.Input, &p.Output} {
		if found[i] != nil {
			*to = *found[i]
		}
	}
	for i, to := range []**float64{&p.CacheRead, &p.CacheWrite} {
		if found[2+i] != nil {
			*to = found[2+i]
		}
	}
	return &p, nil
}

// number reads a count or a price, which may be written as text; nil where it is absent.
func number(o *value.Object, name string) (*float64, error) {
	var f float64
	var err error
	switch v := member(o, name).(type) {
	case nil, value.Null:
		return nil, nil
	case value.Str:
		var parsed value.Float
		parsed, err = value.ParseFloat(string(v))
		f = float64(parsed)
	case value.Number:
		f, err = value.ToFloat(v)
	default:
		err = errors.New("no number")
	}
	if err != nil || math.IsNaN(f) || f < 0 || f > math.MaxInt64/2 {
		return nil, exception.Errorf(exception.ValueError, "'%s' must be a number that is not negative, got %s", name, value.Repr(member(o, name)))
	}
	return &f, nil
}

func member(o *value.Object, name string) value.Value {
	v, _ := o.Get(name)
	return v
}
