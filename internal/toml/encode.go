package toml

import (
	"strings"

	"github.com/proctor-run/proctor/value"
)

// Encode writes a table as a document, laid out as Python's toml package
// does: scalars first, then arrays of tables, then sub-tables level by level,
// a header for a table only if it has values of its own or nothing at all.
// Every result is valid TOML: text that the toml package corrupts is escaped,
// tables inside mixed arrays are written inline, and nulls are left out.
func Encode(doc *value.Object) string {
	var b strings.Builder
	own, level := section(doc, "")
	b.WriteString(own)
	for len(level) > 0 {
		var next []member
		for _, m := range level {
			own, inner := section(m.table, m.name)
			if own != "" || len(inner) == 0 {
				if text := b.String(); text != "" && !strings.HasSuffix(text, "\n\n") {
					b.WriteByte('\n')
				}
				b.WriteString("[" + m.name + "]\n" + own)
			}
			next = append(next, inner...)
		}
		level = next
	}
	return b.String()
}

// member is a table with its full, quoted name.
type member struct {
	name  string
	table *value.Object
}

// section returns what stands below a table's header, and its sub-tables.
func section(t *value.Object, name string) (own string, inner []member) {
	var scalars, arrays strings.Builder
	for key, v := range t.All() {
		full := quoteKey(key)
		if name != "" {
			full = name + "." + full
		}
		switch v := v.(type) {
		case nil, value.Null:
		case *value.Object:
			inner = append(inner, member{full, v})
		case value.List:
			if tables, ok := allTables(v); ok {
				for _, table := range tables {
					writeElement(&arrays, full, table)
				}
				continue
			}
			scalars.WriteString(quoteKey(key) + " = " + encodeValue(v) + "\n")
		default:
			scalars.WriteString(quoteKey(key) + " = " + encodeValue(v) + "\n")
		}
	}
	return scalars.String() + arrays.String(), inner
}

func allTables(list value.List) (tables []*value.Object, ok bool) {
	for _, item := range list {
		table, isTable := item.(*value.Object)
		if !isTable {
			return nil, false
		}
		tables = append(tables, table)
	}
	return tables, len(tables) > 0
}

// writeElement writes one table of an array of tables: its values, a blank
// line, then its sub-tables without blank lines; empty ones are left out.
func writeElement(b *strings.Builder, name string, t *value.Object) {
	b.WriteString("[[" + name + "]]\n")
	own, level := section(t, name)
	tail := "\n"
	if strings.HasPrefix(own, "[") {
		tail += own
	} else {
		b.WriteString(own)
	}
	for len(level) > 0 {
		var next []member
		for _, m := range level {
			own, inner := section(m.table, m.name)
			if own != "" {
				tail += "[" + m.name + "]\n" + own
			}
			next = append(next, inner...)
		}
		level = next
	}
	b.WriteString(tail)
}

func encodeValue(v value.Value) string {
	switch v := v.(type) {
	case value.Str:
		return QuoteString(string(v))
	case value.Bool:
		if v {
			return "true"
		}
		return "false"
	case value.Float:
		text := value.FloatRepr(float64(v))
		return strings.NewReplacer("e+0", "e+", "e-0", "e-").Replace(text)
	case value.List:
		var b strings.Builder
		for _, item := range v {
			if !value.IsNull(item) {
				b.WriteString(" " + encodeValue(item) + ",")
			}
		}
		return "[" + b.String() + "]"
	case *value.Object:
		var parts []string
		for key, item := range v.All() {
			if !value.IsNull(item) {
				parts = append(parts, quoteKey(key)+" = "+encodeValue(item))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	default:
		return value.Repr(v)
	}
}

func quoteKey(key string) string {
	bare := key != ""
	for i := range len(key) {
		bare = bare && isBareKey(key[i])
	}
	if bare {
		return key
	}
	return QuoteString(key)
}

// QuoteString writes a basic string: quotes and backslashes escaped, tab, line
// feed and carriage return by their letters, what Python would not print by
// its number, all else as it is.
func QuoteString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r >= ' ' && r < 0x7f:
			b.WriteRune(r)
		default:
			b.WriteString(escapeRune(r))
		}
	}
	b.WriteByte('"')
	return b.String()
}

// escapeRune returns a character as it is when Python prints it, else its
// escape, of which \xNN is not TOML.
func escapeRune(r rune) string {
	text := strings.Trim(value.Repr(value.Str(r)), "'")
	if hex, ok := strings.CutPrefix(text, `\x`); ok {
		return `\u00` + hex
	}
	return text
}
