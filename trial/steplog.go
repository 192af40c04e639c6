package trial

import (
	"errors"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// stepLog is the log of an episode: every line is an object, whatever is left out.
type stepLog struct {
	lines *bounded.Lines
	veil  *veil
}

func newStepLog(dir string, limit int64, veil *veil) (*stepLog, error) {
	lines, err := bounded.CreateLines(dir, jobdir.StepsFile, limit, func(c bounded.Cut) []byte {
		return appendLine(cube.Pairs("omitted_lines", c.Lines, "omitted_bytes", c.Bytes))
	})
	if err != nil {
		return nil, err
	}
	return &stepLog{lines, veil}, nil
}

func (l *stepLog) close() error { return l.lines.Close() }

// failed writes a line of what failed and returns the error.
func (l *stepLog) failed(actions []cube.Action, out *cube.EnvironmentOutput, err error) error {
	if logErr := l.add(actions, out, err); logErr != nil {
		return errors.Join(err, logErr)
	}
	return err
}

// add writes a line: the actions of a turn and what came of them. A forced evaluation
// has no action. Of a line that would be too long the output is left out.
func (l *stepLog) add(actions []cube.Action, out *cube.EnvironmentOutput, failed error) error {
	line := cube.Pairs("action", nil, "output", nil)
	if len(actions) > 0 {
		v, err := cube.ValueOf(&actions[0])
		if err != nil {
			return err
		}
		line.Set("action", v)
	}
	if len(actions) > 1 {
		v, err := cube.ValueOf(actions)
		if err != nil {
			return err
		}
		line.Set("actions", v)
	}
	if out != nil {
		v, err := cube.ValueOf(out)
		if err != nil {
			return err
		}
		line.Set("output", v)
	}
	if failed != nil {
		typ, message := describe(failed)
		line.Set("error", value.Str(typ+": "+message))
	}
	l.lines.Add(l.veil.bytes(l.bound(line)))
	return nil
}

// bound writes a line as JSON, with null for its parts, the output first, while it is
// too long to be kept.
func (l *stepLog) bound(line *cube.Object) []byte {
	data := appendLine(line)
	whole := int64(len(data))
	for _, part := range []string{"output", "actions", "action", "error"} {
		if int64(len(data)) <= l.lines.Longest() {
			break
		}
		if line.Has(part) {
			line.Set(part, value.Null{})
			line.Set("omitted_bytes", value.NewInt(whole))
			data = appendLine(line)
		}
	}
	return data
}

func appendLine(line *cube.Object) []byte { return append(value.AppendPydantic(nil, line, 0), '\n') }
