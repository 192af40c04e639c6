package scan

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// scanRecord reads the record of a result.json without building the document.
// It checks that all of the text is JSON and that what it reads is spelled as
// runners write it. Anything else, right or wrong, makes it give up: then the
// full reader must decide.
func scanRecord(data []byte, in *interner) (FileRecord, bool) {
	if !utf8.Valid(data) || bytes.HasPrefix(data, []byte("\ufeff")) {
		return FileRecord{}, false
	}
	s := scanner{data: data, in: in}
	rec := s.result()
	s.space()
	if s.failed || s.pos != len(data) {
		return FileRecord{}, false
	}
	return rec, true
}

// interner keeps one copy of texts that many trials share.
type interner map[string]string

func (in interner) intern(b []byte) string {
	if s, ok := in[string(b)]; ok {
		return s
	}
	s := string(b)
	in[s] = s
	return s
}

// scanner walks over JSON text. After a failure all its methods do nothing and
// return zero values.
type scanner struct {
	data   []byte
	pos    int
	depth  int
	failed bool
	in     *interner
}

// Limits beyond which the scanner leaves a text to the full reader.
const (
	maxScanDepth  = 1000
	maxScanDigits = 1000
)

func (s *scanner) fail() { s.failed = true }

// Keys that every result has; seen is a set of them.
const (
	seenTaskName = 1 << iota
	seenTrialName
	seenTrialURI
	seenTaskID
	seenTaskChecksum
	seenConfig
	seenAgentInfo
	seenAll = 1<<iota - 1
)

func (s *scanner) result() FileRecord {
	var rec FileRecord
	var own, steps jobdir.Usage
	var times phases
	hasOwn, seen := false, 0
	s.object(func(key []byte) {
		switch string(key) {
		case "source":
			rec.Source = ""
			if !s.null() {
				rec.Source = s.shared()
			}
		case "agent_result":
			own, hasOwn = s.usage()
		case "verifier_result":
			rec.Rewards = s.verifierResult()
		case "exception_info":
			rec.ExceptionType = s.exceptionType()
		case "started_at":
			rec.StartedAt = s.micros()
		case "step_results":
			steps, rec.StepExceptionType = s.steps(&times)
		case string(EnvironmentSetup):
			times.own[0] = s.span()
		case string(AgentSetup):
			times.own[1] = s.span()
		case string(AgentExecution):
			times.own[2] = s.span()
		case string(Verifier):
			times.own[3] = s.span()
		default:
			seen |= s.required(key, &rec)
		}
	})
	if seen != seenAll {
		s.fail()
	}
	rec.Phases = times.list()
	rec.Usage = steps
	if hasOwn {
		rec.Usage = own
	}
	return rec
}

// required reads the value of a key that every result has and returns which it
// is; of any other key it skips the value.
func (s *scanner) required(key []byte, rec *FileRecord) int {
	switch string(key) {
	case "task_name":
		rec.TaskName = s.shared()
		return seenTaskName
	case "trial_name":
		rec.TrialName = s.text()
		return seenTrialName
	case "trial_uri":
		s.string()
		return seenTrialURI
	case "task_id":
		s.skip()
		return seenTaskID
	case "config":
		s.skip()
		return seenConfig
	case "task_checksum":
		rec.TaskChecksum = s.shared()
		return seenTaskChecksum
	case "agent_info":
		s.agentInfo(rec)
		return seenAgentInfo
	}
	s.skip()
	return 0
}

func (s *scanner) agentInfo(rec *FileRecord) {
	named := false
	rec.ModelName = ""
	s.object(func(key []byte) {
		switch string(key) {
		case "name":
			rec.AgentName, named = s.shared(), true
		case "model_info":
			rec.ModelName = ""
			if s.null() {
				return
			}
			modelNamed := false
			s.object(func(key []byte) {
				if string(key) != "name" {
					s.skip()
					return
				}
				rec.ModelName, modelNamed = s.shared(), true
			})
			if !modelNamed {
				s.fail()
			}
		default:
			s.skip()
		}
	})
	if !named {
		s.fail()
	}
}

// usage reads an agent result or null; given tells which.
func (s *scanner) usage() (u jobdir.Usage, given bool) {
	if s.null() {
		return u, false
	}
	s.object(func(key []byte) {
		switch string(key) {
		case "n_input_tokens":
			u.NInputTokens = s.optInt()
		case "n_cache_tokens":
			u.NCacheTokens = s.optInt()
		case "n_output_tokens":
			u.NOutputTokens = s.optInt()
		case "cost_usd":
			u.CostUSD = s.optFloat()
		default:
			s.skip()
		}
	})
	return u, true
}

// steps reads the results of steps: what they used together, the first exception, and
// when each did what.
func (s *scanner) steps(times *phases) (total jobdir.Usage, exception string) {
	times.steps = nil
	if s.null() {
		return total, ""
	}
	s.array(func() {
		var u jobdir.Usage
		var when step
		kind := ""
		s.object(func(key []byte) {
			switch string(key) {
			case "agent_result":
				u, _ = s.usage()
			case "exception_info":
				kind = s.exceptionType()
			case "step_name":
				when.name = s.shared()
			case string(AgentExecution):
				when.agent = s.span()
			case string(Verifier):
				when.verifier = s.span()
			default:
				s.skip()
			}
		})
		times.steps = append(times.steps, when)
		total.Add(u)
		exception = cmp.Or(exception, kind)
	})
	return total, exception
}

func (s *scanner) verifierResult() *reward.Rewards {
	if s.null() {
		return nil
	}
	var rewards *reward.Rewards
	s.object(func(key []byte) {
		if string(key) != "rewards" {
			s.skip()
			return
		}
		if s.null() {
			rewards = nil
			return
		}
		rewards = &reward.Rewards{}
		s.object(func(key []byte) {
			name := s.in.intern(key)
			if s.null() {
				rewards.Set(name, value.Float(math.NaN()))
				return
			}
			if x := s.number(); !s.failed {
				rewards.Set(name, x)
			}
		})
	})
	return rewards
}

func (s *scanner) exceptionType() string {
	if s.null() {
		return ""
	}
	kind := ""
	s.object(func(key []byte) {
		if string(key) == "exception_type" {
			kind = s.shared()
			return
		}
		s.skip()
	})
	if kind == "" {
		s.fail()
	}
	return kind
}

// span reads a timing or null.
func (s *scanner) span() span {
	if s.null() {
		return span{}
	}
	var t span
	var began, ended bool
	s.object(func(key []byte) {
		switch string(key) {
		case "started_at":
			t.from, began = s.moment()
		case "finished_at":
			t.to, ended = s.moment()
		default:
			s.skip()
		}
	})
	t.ok = began && ended
	return t
}

// micros reads a UTC time or null as microseconds since 1970.
func (s *scanner) micros() int64 {
	t, _ := s.moment()
	return t
}

// moment is micros; known tells null from the first moment of 1970.
func (s *scanner) moment() (t int64, known bool) {
	if s.null() {
		return 0, false
	}
	at, err := jobdir.ParseTime(string(s.string()))
	if err != nil {
		s.fail()
		return 0, false
	}
	return microsOf(at), true
}

func (s *scanner) optInt() *value.Int {
	if s.null() {
		return nil
	}
	n, ok := s.number().(value.Int)
	if !ok {
		s.fail()
		return nil
	}
	return &n
}

func (s *scanner) optFloat() *float64 {
	if s.null() {
		return nil
	}
	x := s.number()
	if s.failed {
		return nil
	}
	f, err := value.ToFloat(x)
	if err != nil {
		s.fail()
		return nil
	}
	return &f
}

// text reads a string.
func (s *scanner) text() string { return string(s.string()) }

// shared reads a string that many trials have in common.
func (s *scanner) shared() string {
	b := s.string()
	if s.failed {
		return ""
	}
	return s.in.intern(b)
}

// number reads an int or a float.
func (s *scanner) number() value.Number {
	token, integral := s.numberToken()
	if s.failed {
		return nil
	}
	if !integral {
		f, _ := strconv.ParseFloat(string(token), 64) // out of range is infinite or zero
		return value.Float(f)
	}
	if n, err := strconv.ParseInt(string(token), 10, 64); err == nil {
		return value.NewInt(n)
	}
	n, err := value.ParseInt(string(token))
	if err != nil {
		s.fail()
	}
	return n
}
