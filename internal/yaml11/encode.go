package yaml11

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// Encode writes a document in block style, keys in their order, lists not
// indented. Strings are quoted where a YAML 1.1 reader would take them for
// something else.
func Encode(v value.Value) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := enc.Encode(node(v)); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return b.Bytes(), nil
}

func node(v value.Value) *yaml.Node {
	switch v := v.(type) {
	case value.Str:
		return textNode(string(v))
	case value.Bool:
		if v {
			return plainNode("!!bool", "true")
		}
		return plainNode("!!bool", "false")
	case value.Int:
		return plainNode("!!int", v.String())
	case value.Float:
		return plainNode("!!float", floatText(float64(v)))
	case schema.Temporal:
		return plainNode("!!timestamp", string(v.Value.(value.Str)))
	case value.List:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range v {
			n.Content = append(n.Content, node(item))
		}
		return n
	case *value.Object:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for key, item := range v.All() {
			n.Content = append(n.Content, textNode(key), node(item))
		}
		return n
	}
	return plainNode("!!null", "null")
}

func plainNode(tag, text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
}

func textNode(text string) *yaml.Node {
	n := plainNode("!!str", strings.ToValidUTF8(text, "\ufffd"))
	if implicitTag(text) != "!!str" || text == "<<" {
		n.Style = yaml.SingleQuotedStyle
	}
	return n
}

// floatText spells a float so that a YAML 1.1 reader takes it for one: with a
// dot before the exponent.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return ".nan"
	case math.IsInf(f, 1):
		return ".inf"
	case math.IsInf(f, -1):
		return "-.inf"
	}
	text := value.FloatRepr(f)
	if mantissa, exponent, ok := strings.Cut(text, "e"); ok && !strings.Contains(mantissa, ".") {
		return mantissa + ".0e" + exponent
	}
	return text
}
