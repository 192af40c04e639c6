package toml

import (
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// Lines say on which line of a document each key and each table begins.
type Lines struct{ root *lineNode }

// lineNode is a key, a table or an element of a list.
type lineNode struct {
	line  int
	inner map[string]*lineNode
}

// DecodeLines is [Decode], which also says where keys are.
func DecodeLines(text string) (*value.Object, Lines, error) {
	p := newParser(text)
	p.lines = &lineCounter{}
	if err := p.document(); err != nil {
		return nil, Lines{}, err
	}
	return p.root, Lines{&p.lines.root}, nil
}

// Of is the line, from 1, of a place: the names of keys, and of elements of lists the
// numbers, the first of which is 0. For one that is not there it is that of what it would
// be in; 0 where nothing of it is there. What is in an inline table or list has the line
// on which the statement begins.
func (l Lines) Of(place []any) int {
	line := 0
	for n := l.root; n != nil; {
		line = n.line
		if len(place) == 0 {
			break
		}
		switch part := place[0].(type) {
		case string:
			n = n.inner[part]
		case int:
			n = n.inner[elementName(part)]
		default:
			n = nil
		}
		place = place[1:]
	}
	return line
}

// elementName is that of an element of a list. No node has both elements and keys.
func elementName(i int) string { return "\x00" + strconv.Itoa(i) }

// lineCounter notes the lines that a parser comes by.
type lineCounter struct {
	root      lineNode
	pos, line int // up to where newlines are counted, and how many there were
}

// note keeps the line of the statement that has just set a key or begun a table, for all
// of its names that have none yet.
func (p *parser) note(key []string, table bool) {
	if p.lines == nil {
		return
	}
	c := p.lines
	c.line += strings.Count(p.src[c.pos:p.begin], "\n")
	c.pos = p.begin
	node, at := &c.root, p.root
	for i, part := range key {
		node = node.add(part, c.line+1)
		next, _ := at.Get(part)
		if list, ok := next.(value.List); ok && len(list) > 0 && (table || i < len(key)-1) {
			node = node.add(elementName(len(list)-1), c.line+1)
			next = list[len(list)-1]
		}
		if at, _ = next.(*value.Object); at == nil {
			return
		}
	}
}

func (n *lineNode) add(name string, line int) *lineNode {
	inner := n.inner[name]
	if inner == nil {
		inner = &lineNode{line: line}
		if n.inner == nil {
			n.inner = map[string]*lineNode{}
		}
		n.inner[name] = inner
	}
	return inner
}
