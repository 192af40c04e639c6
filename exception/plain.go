package exception

import "strings"

// Plain is an error that has two texts: Error gives the one that results record, in the
// words that other programs match on, and PlainText the same in plain words, for people.
type Plain interface {
	error
	PlainText() string
}

// PlainText returns the text of err for people: its own, in which the text of each error
// of its tree that is [Plain] is replaced with the plain one. What is recorded is
// err.Error() all the same.
func PlainText(err error) string {
	text := err.Error()
	walk(err, func(e error) {
		if p, ok := e.(Plain); ok { //nolint:errorlint // walk looks at each error
			if recorded := p.Error(); recorded != "" {
				text = strings.Replace(text, recorded, p.PlainText(), 1)
			}
		}
	})
	return text
}

// walk calls do with each error of a tree, the outer ones first.
func walk(err error, do func(error)) {
	if err == nil {
		return
	}
	do(err)
	switch e := err.(type) { //nolint:errorlint // this error's own way to others
	case interface{ Unwrap() error }:
		walk(e.Unwrap(), do)
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			walk(part, do)
		}
	}
}
