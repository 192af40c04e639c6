// Package junit writes the results of a job as JUnit XML, which continuous
// integration systems show: a test suite for each group of trials, a test case
// for each trial.
//
// [Read] reads a job directory, [Report.Write] writes the file. The document
// follows the schema that Jenkins publishes for JUnit 10; what a schema has no
// place for stands in the text of a test case.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Options choose what counts as passed.
type Options struct {
	// PassAt is the reward from which a trial has passed.
	PassAt float64
	// Reward is the name of the reward that counts. Empty, it is the only one
	// of a trial, or "reward" among several, else each of them.
	Reward string
}

// State is what a test case came to.
type State int

// The states.
const (
	Passed  State = iota
	Failed        // a reward below the threshold
	Errored       // an exception and no reward
	Skipped       // not run to its end, or not verified
)

// Report is a job as test suites.
type Report struct {
	Name   string
	Suites []Suite
}

// Suite is one group of trials.
type Suite struct {
	Name       string
	Started    time.Time // of the first trial; zero when none has started
	Properties []Property
	Cases      []Case
}

// Property is a fact about a suite.
type Property struct{ Name, Value string }

// Case is one trial.
type Case struct {
	Name  string // task, and the attempt's number where there are several
	Class string
	// Time that the trial took.
	Time  time.Duration
	State State
	// Type, Message and Body tell why it has not passed.
	Type, Message, Body string
	// Output are facts about the trial, for people.
	Output string
}

// Bounds of texts that come from tasks, in bytes.
const (
	maxName    = 500
	maxMessage = 1000
	maxBody    = 16 << 10
)

// Write writes the document. Characters that XML cannot have are replaced by
// U+FFFD, and texts beyond a bound are cut, with a mark.
func (r *Report) Write(w io.Writer) error {
	doc := document{Name: bound(r.Name, maxName)}
	var all time.Duration
	for i := range r.Suites {
		s := newSuite(&r.Suites[i])
		doc.Suites = append(doc.Suites, s)
		doc.Tests += s.Tests
		doc.Failures += s.Failures
		doc.Errors += s.Errors
		for _, c := range r.Suites[i].Cases {
			all += c.Time
		}
	}
	doc.Time = seconds(all)
	text, err := xml.MarshalIndent(doc, "", "  ")
	if err != nil {
		return fmt.Errorf("writing JUnit XML: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	if err != nil {
		return fmt.Errorf("writing JUnit XML: %w", err)
	}
	return nil
}

// The elements, with their attributes and children in the schema's order.

type document struct {
	XMLName  xml.Name `xml:"testsuites"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Time     string   `xml:"time,attr"`
	Suites   []suite
}

type suite struct {
	XMLName    xml.Name    `xml:"testsuite"`
	Name       string      `xml:"name,attr"`
	Tests      int         `xml:"tests,attr"`
	Failures   int         `xml:"failures,attr"`
	Errors     int         `xml:"errors,attr"`
	Skipped    int         `xml:"skipped,attr"`
	Time       string      `xml:"time,attr"`
	Timestamp  string      `xml:"timestamp,attr,omitempty"`
	Properties *properties `xml:"properties"`
	Cases      []testcase
}

type properties struct {
	List []property
}

type property struct {
	XMLName xml.Name `xml:"property"`
	Name    string   `xml:"name,attr"`
	Value   string   `xml:"value,attr"`
}

type testcase struct {
	XMLName xml.Name `xml:"testcase"`
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Time    string   `xml:"time,attr"`
	Skipped *reason  `xml:"skipped"`
	Error   *reason  `xml:"error"`
	Failure *reason  `xml:"failure"`
	Output  string   `xml:"system-out,omitempty"`
}

type reason struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Body    string `xml:",chardata"`
}

func newSuite(s *Suite) suite {
	out := suite{Name: bound(s.Name, maxName), Tests: len(s.Cases)}
	if !s.Started.IsZero() {
		out.Timestamp = s.Started.UTC().Format("2006-01-02T15:04:05")
	}
	if len(s.Properties) > 0 {
		out.Properties = &properties{}
		for _, p := range s.Properties {
			out.Properties.List = append(out.Properties.List, property{Name: bound(p.Name, maxName), Value: bound(p.Value, maxMessage)})
		}
	}
	var all time.Duration
	for i := range s.Cases {
		c := &s.Cases[i]
		all += c.Time
		t := testcase{Name: bound(c.Name, maxName), Class: bound(c.Class, maxName), Time: seconds(c.Time), Output: bound(c.Output, maxBody)}
		why := &reason{Message: bound(c.Message, maxMessage), Type: bound(c.Type, maxName), Body: bound(c.Body, maxBody)}
		switch c.State {
		case Failed:
			out.Failures++
			t.Failure = why
		case Errored:
			out.Errors++
			t.Error = why
		case Skipped:
			out.Skipped++
			why.Type = ""
			t.Skipped = why
		case Passed:
		}
		out.Cases = append(out.Cases, t)
	}
	out.Time = seconds(all)
	return out
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(max(d, 0).Seconds(), 'f', 3, 64)
}

// bound cuts a text after at most n bytes, between two characters.
func bound(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end := n
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + fmt.Sprintf("… (%d bytes left out)", len(s)-end)
}

// firstLine is what of a message fits into an attribute.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
