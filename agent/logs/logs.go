// Package logs turns what agents leave in their log directories into trajectories,
// tokens and cost.
//
// [Read] reads the log directory of a trial with the [Reader] of its agent. The
// files come out of a sandbox and may hold anything: they are read within bounds,
// no link leads out of the directory, lines that are no JSON are skipped, and every
// trajectory that is returned is valid.
//
// The rules are those of Harbor's agents and trajectories, section 3.2, and the
// layouts those that the agents had when they were tried. pi, of which Harbor reads
// only the tokens, and kilo, which it does not know, have trajectories here.
package logs

import (
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/value"
)

// Input is what an agent left, and what is known about its run.
type Input struct {
	// Dir is the agent's log directory on this machine.
	Dir string
	// Model is the configured model, with its provider; it may be empty.
	Model string
	// Instruction is what the agent was told, for logs that do not have it; it may
	// be empty.
	Instruction string
	// Version is the agent's, as the trial knows it, for logs that do not have it; it
	// may be empty.
	Version string
	// Session is the id of the run, for agents that log none; it may be empty.
	Session string
	// Prices finds what a model costs, for agents that do not say what they spent.
	// Without it their cost is unknown.
	Prices func(model string) (Price, bool)
}

// Price is what tokens of a model cost, in US dollars each.
type Price struct {
	Input, Output float64
	// CacheRead is nil where cached input costs what other input does.
	CacheRead *float64
}

// Converted is what a log says.
type Converted struct {
	// Trajectory is nil when the agent left no session.
	Trajectory *atif.Trajectory
	// Style is the layout in which the agent's trajectories are written.
	Style atif.Style
	// InputTokens include CachedTokens; nil is unknown.
	InputTokens, CachedTokens, OutputTokens *value.Int
	// CostUSD is in US dollars; nil is unknown.
	CostUSD *float64
	// Images are the files to which the trajectory refers.
	Images []Image
	// Failure is what the agent itself says ended its run: a refused key, a model
	// that is not there. It is empty where it says nothing of the kind. Exit codes
	// do not always tell. [FailureType] finds its kind.
	Failure string
	// FailureType is the kind of Failure where the reader knows it; empty leaves it to
	// [FailureType].
	FailureType string
	// Truncated says of each file that is not whole what is missing of it, in one
	// line: where an agent is killed, or prints more than is kept, a log ends or is
	// broken in the middle of a record. Empty where everything was read.
	Truncated []string
}

// Image is a file beside a trajectory.
type Image struct {
	// Path is relative to the trajectory and never leads upwards.
	Path string
	Data []byte
}

// Reader reads what an agent left in its log directory. It returns a result
// without a trajectory where the agent left no session.
type Reader func(d *Dir, in Input) (*Converted, error)

// Read reads the logs of an agent with its reader, and makes sure that the
// trajectory is valid. Without a session everything is unknown, which is no error.
// The name of the agent is for errors.
func Read(agent string, read Reader, in Input) (*Converted, error) {
	root, err := bounded.OpenDir(in.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening the agent's logs: %w", err)
	}
	defer func() { _ = root.Close() }()
	d := &Dir{path: in.Dir, fs: root.FS(), left: maxLogs}
	c, err := read(d, in)
	if err != nil {
		return nil, fmt.Errorf("reading the logs of %s: %w", agent, err)
	}
	c.Truncated, c.Failure = d.truncated(), shortened(c.Failure)
	c.leaveNonsense()
	if c.Trajectory == nil {
		return c, nil
	}
	if c.Trajectory, err = atif.Decode(c.Trajectory.Object()); err != nil {
		return nil, fmt.Errorf("reading the logs of %s: %w", agent, err)
	}
	return c, nil
}

// leaveNonsense leaves away costs that are no numbers: JSON cannot hold them.
func (c *Converted) leaveNonsense() {
	finite := func(usd *float64) *float64 {
		if usd != nil && (math.IsNaN(*usd) || math.IsInf(*usd, 0)) {
			return nil
		}
		return usd
	}
	c.CostUSD = finite(c.CostUSD)
	t := c.Trajectory
	if t == nil {
		return
	}
	for i := range t.Steps {
		if m := t.Steps[i].Metrics; m != nil {
			m.CostUSD = finite(m.CostUSD)
		}
	}
	if t.FinalMetrics != nil {
		t.FinalMetrics.CostUSD = finite(t.FinalMetrics.CostUSD)
	}
}

// maxLog is the size of the largest log that is read.
const maxLog = 128 << 20

// maxLogs is how much is read of all logs of an agent.
const maxLogs = 4 * maxLog

// maxEntries is how many files and directories of a log directory are looked at.
const maxEntries = 100_000

// Dir is a log directory as readers see it. Names are relative to it, with slashes.
type Dir struct {
	path  string
	fs    fs.FS
	left  int64             // bytes that still may be read
	noted []string          // the files that are not whole, in the order in which they were read
	notes map[string]string // what is missing of them
}

// Walk visits what is below a directory, in lexical order, as far as its bound.
func (d *Dir) Walk(top string, visit func(name string, isDir bool)) {
	n := 0
	_ = fs.WalkDir(d.fs, top, func(name string, e fs.DirEntry, err error) error {
		if n++; n > maxEntries {
			d.note(top, fmt.Sprintf("%s has more than %d entries: not all are looked at", top, maxEntries))
		}
		if err != nil || n > maxEntries {
			return fs.SkipAll
		}
		if name != top {
			visit(name, e.IsDir())
		}
		return nil
	})
}

// decode reads JSON, nil for all else. What UTF-8 cannot hold is replaced, because
// trajectories cannot hold it either.
func decode(text string) value.Value {
	v, err := value.DecodeText(strings.ToValidUTF8(strings.TrimSpace(text), "\ufffd"))
	if err != nil {
		return nil
	}
	if strings.Contains(text, `\ud`) || strings.Contains(text, `\uD`) {
		return scrub(v)
	}
	return v
}

// scrub replaces lone surrogates.
func scrub(v value.Value) value.Value {
	switch v := v.(type) {
	case value.Str:
		return value.Str(strings.ToValidUTF8(string(v), "\ufffd"))
	case value.List:
		for i := range v {
			v[i] = scrub(v[i])
		}
	case *value.Object:
		out := value.NewObject(v.Len())
		for key, item := range v.All() {
			out.Set(strings.ToValidUTF8(key, "\ufffd"), scrub(item))
		}
		return out
	}
	return v
}

// at returns what is at a path of members, nil where there is nothing.
func at(v value.Value, keys ...string) value.Value {
	for _, key := range keys {
		o, ok := v.(*value.Object)
		if !ok {
			return nil
		}
		v, _ = o.Get(key)
	}
	return v
}

// text is text at a path of members, else empty.
func text(v value.Value, keys ...string) string {
	s, _ := at(v, keys...).(value.Str)
	return string(s)
}

func list(v value.Value, keys ...string) value.List {
	l, _ := at(v, keys...).(value.List)
	return l
}

func object(v value.Value, keys ...string) *value.Object {
	o, _ := at(v, keys...).(*value.Object)
	return o
}

// count is a number of tokens; what is missing or no number counts as none.
func count(v value.Value, keys ...string) value.Int {
	switch n := at(v, keys...).(type) {
	case value.Int:
		return n
	case value.Float:
		i, _ := value.Truncate(float64(n))
		return i
	}
	return value.Int{}
}

// amount is a number of dollars, nil where there is none.
func amount(v value.Value, keys ...string) *float64 {
	n, ok := at(v, keys...).(value.Number)
	if !ok {
		return nil
	}
	f, err := value.ToFloat(n)
	if err != nil {
		return nil
	}
	return &f
}

// dumps is a value as one line of JSON.
func dumps(v value.Value) string {
	return string(value.AppendDumps(nil, v, value.DumpsOptions{Unicode: true}))
}

// either is the first text that is not empty.
func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// optional is nil for empty text.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// timestamp is a record's time, nil where it is none that a trajectory may hold.
func timestamp(v value.Value, keys ...string) *string {
	s := text(v, keys...)
	if !atif.ValidTimestamp(s) {
		return nil
	}
	return &s
}

// afterLast is a model's name without its provider.
func afterLast(model string) string { return path.Base("/" + model) }

// version is the agent's where its log says none.
func (in Input) version() string { return either(in.Version, "unknown") }

// withStatus is what an agent says with the status of the answer, where the log has
// it in another place.
func withStatus(said string, status value.Value) string {
	code, _ := status.(value.Int)
	n, _ := code.Int64()
	if n < 100 || n > 599 || strings.Contains(said, strconv.FormatInt(n, 10)) {
		return said
	}
	return strings.TrimSpace(fmt.Sprintf("%s (HTTP %d)", said, n))
}

// cost is what tokens cost, nil when nobody knows.
func (in Input) cost(input, cached, output value.Int) *float64 {
	if in.Prices == nil {
		return nil
	}
	p, ok := in.Prices(in.Model)
	if !ok {
		p, ok = in.Prices(afterLast(in.Model))
	}
	if !ok {
		return nil
	}
	read := p.Input
	if p.CacheRead != nil {
		read = *p.CacheRead
	}
	all, _ := input.Float64()
	fromCache, _ := cached.Float64()
	out, _ := output.Float64()
	// Conversions keep products from being fused with sums.
	usd := float64(max(all-fromCache, 0)*p.Input) + float64(fromCache*read) + float64(out*p.Output)
	return &usd
}

// number gives the steps their numbers.
func number(steps []atif.Step) []atif.Step {
	for i := range steps {
		steps[i].ID = i + 1
	}
	return steps
}

func stepCount(steps []atif.Step) *value.Int { return new(value.NewInt(int64(len(steps)))) }
