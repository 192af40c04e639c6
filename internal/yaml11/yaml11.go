// Package yaml11 reads YAML documents as Python's safe YAML 1.1 loader does:
// yes, no, on and off are booleans, 1:30 is a number, 010 is eight, unquoted
// dates are dates, "<<" merges tables, and of duplicate keys the last wins.
//
// Begin with [Decode].
package yaml11

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/proctor-run/proctor/value"
)

// maxNodes bounds how many values a document may expand to, so that aliases of
// aliases cannot exhaust memory.
const maxNodes = 1 << 18

// maxDepth bounds how deep tables and lists may nest.
const maxDepth = 1000

// Error says where and why a document cannot be read.
type Error struct {
	Line int // from 1; 0 when the reader did not say
	Msg  string
}

// Error renders the place and the reason.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Msg
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Msg)
}

// Decode reads one document. An empty one is null. Dates and times become
// schema.Temporal values. The error is an [*Error].
func Decode(data []byte) (value.Value, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return value.Null{}, nil
	} else if err != nil {
		return nil, syntaxError(err)
	}
	if err := dec.Decode(&more); err == nil {
		return nil, &Error{Line: more.Line, Msg: "expected a single document in the stream, but found another document"}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxError(err)
	}
	b := builder{open: map[*yaml.Node]bool{}}
	return b.value(&doc)
}

// syntaxError takes over the parser's words and the line they name.
func syntaxError(err error) error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	e := &Error{Msg: msg}
	var line int
	if n, _ := fmt.Sscanf(msg, "line %d:", &line); n == 1 {
		_, rest, _ := strings.Cut(msg, ": ")
		e.Line, e.Msg = line, rest
	}
	return e
}

// builder turns nodes into values.
type builder struct {
	count int
	depth int
	open  map[*yaml.Node]bool // nodes being built, to find aliases of themselves
}

func (b *builder) value(n *yaml.Node) (value.Value, error) {
	b.count++
	b.depth++
	defer func() { b.depth-- }()
	switch {
	case b.count > maxNodes:
		return nil, fail(n, "the document expands to more than %d values", maxNodes)
	case b.depth > maxDepth:
		return nil, fail(n, "nested deeper than %d levels", maxDepth)
	case b.open[n]:
		return nil, fail(n, "a value contains itself through an alias")
	}
	b.open[n] = true
	defer delete(b.open, n)
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return value.Null{}, nil
		}
		return b.value(n.Content[0])
	case yaml.AliasNode:
		return b.value(n.Alias)
	case yaml.SequenceNode:
		return b.list(n)
	case yaml.MappingNode:
		return b.table(n)
	case yaml.ScalarNode:
		return scalar(n)
	}
	return value.Null{}, nil
}

func (b *builder) list(n *yaml.Node) (value.Value, error) {
	if !plainTag(n, "!!seq") {
		return nil, unknownTag(n)
	}
	out := make(value.List, 0, len(n.Content))
	for _, item := range n.Content {
		v, err := b.value(item)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (b *builder) table(n *yaml.Node) (value.Value, error) {
	if !plainTag(n, "!!map") {
		return nil, unknownTag(n)
	}
	out := value.NewObject(len(n.Content) / 2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if isMerge(n.Content[i]) {
			if err := b.merge(out, n.Content[i+1]); err != nil {
				return nil, err
			}
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if isMerge(n.Content[i]) {
			continue
		}
		key, err := b.key(n.Content[i])
		if err != nil {
			return nil, err
		}
		v, err := b.value(n.Content[i+1])
		if err != nil {
			return nil, err
		}
		out.Set(key, v)
	}
	return out, nil
}

// merge adds the members of one table, or of a list of tables of which the
// first wins.
func (b *builder) merge(out *value.Object, n *yaml.Node) error {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	sources := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		sources = nil
		for _, item := range n.Content {
			sources = append([]*yaml.Node{item}, sources...)
		}
	}
	for _, source := range sources {
		v, err := b.value(source)
		if err != nil {
			return err
		}
		table, ok := v.(*value.Object)
		if !ok {
			return fail(source, "expected a mapping or list of mappings for merging")
		}
		for key, item := range table.All() {
			out.Set(key, item)
		}
	}
	return nil
}

func (b *builder) key(n *yaml.Node) (string, error) {
	v, err := b.value(n)
	if err != nil {
		return "", err
	}
	s, ok := v.(value.Str)
	if !ok {
		return "", fail(n, "the key %s is not a string; quote it", value.Repr(v))
	}
	return string(s), nil
}

func isMerge(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "<<" && n.Style&quoted == 0 &&
		(n.Style&yaml.TaggedStyle == 0 || n.ShortTag() == "!!merge")
}

func plainTag(n *yaml.Node, tag string) bool {
	return n.Style&yaml.TaggedStyle == 0 || n.ShortTag() == tag
}

func unknownTag(n *yaml.Node) error {
	return fail(n, "could not determine a constructor for the tag %q", n.LongTag())
}

func fail(n *yaml.Node, format string, args ...any) error {
	return &Error{Line: n.Line, Msg: fmt.Sprintf(format, args...)}
}
