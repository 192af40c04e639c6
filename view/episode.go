package view

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

const (
	// episodeFile has the turns of a task that is stepped, below a trial's directory.
	episodeFile = "agent/" + jobdir.StepsFile
	// longestTurn bounds a line of it, mostOfTurns all those of a page, in bytes: a page
	// with longer ones has fewer.
	longestTurn = 32 << 20
	mostOfTurns = 32 << 20
)

// episodePage is what an agent did with a task that is stepped, and what came of it.
type episodePage struct {
	Frame frame
	Raw   string
	Count string
	Ended string // how, as far as it was noted
	Steps []step
	Turns turns
}

// hasEpisode reports whether a trial has the file of an episode.
func hasEpisode(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(episodeFile)))
	return err == nil && info.Mode().IsRegular()
}

func (s *Server) serveEpisode(w http.ResponseWriter, r *http.Request) error {
	at, trial, dir, err := s.trialOf(r)
	if err != nil {
		return err
	}
	from, err := stepOf(r)
	if err != nil {
		return err
	}
	lines, all, err := readTurns(r.Context(), dir, from, stepsPerPage)
	if err == nil && len(lines) == 0 && all > 0 {
		from = lastPage(all)
		lines, all, err = readTurns(r.Context(), dir, from, stepsPerPage)
	}
	if err != nil {
		return err
	}
	trialHref := at.trialHref(trial)
	here := trialHref + "/episode"
	p := &episodePage{
		Frame: frame{Title: "Episode", Crumbs: append(s.jobCrumbs(at), crumb{label(trial), trialHref})}, Raw: trialHref + "/raw/" + episodeFile,
		Count: count(all, "turn"),
		Turns: stepTurns("Turns", from, from-1+len(lines), all, func(n int) string { return query(here, "from", strconv.Itoa(n)) }),
	}
	if notes, err := jobdir.ReadNotes(dir); err == nil {
		p.Ended = endOf(&notes)
	}
	for i, line := range lines {
		p.Steps = append(p.Steps, turnOf(from+i, line, here))
	}
	s.render(w, http.StatusOK, "episode", p)
	return nil
}

// endOf says how an episode went on the whole.
func endOf(n *jobdir.Notes) string {
	e := n.Episode
	if e == nil {
		return ""
	}
	text := count(e.Steps, "step")
	if e.MaxSteps > 0 {
		text += " of at most " + strconv.Itoa(e.MaxSteps)
	}
	ends := map[string]string{
		jobdir.EpisodeDone: "then the task was done", jobdir.EpisodeStopped: "then the agent stopped", jobdir.EpisodeMaxSteps: "which was the limit",
		jobdir.EpisodeTimeout: "then its time was up", jobdir.EpisodeBudget: "then its budget was used up",
	}
	return label(text + ", " + cmp.Or(ends[e.End], e.End))
}

// readTurns reads the lines of some turns, of which the first has this number, and how many
// turns there are.
func readTurns(ctx context.Context, dir string, from, most int) (lines [][]byte, all int, err error) {
	f, _, err := openFile(dir, episodeFile)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }()
	read := bufio.NewScanner(f)
	read.Buffer(make([]byte, 64<<10), longestTurn)
	size := 0
	for read.Scan() {
		if ctx.Err() != nil {
			return nil, 0, context.Cause(ctx)
		}
		if len(bytes.TrimSpace(read.Bytes())) == 0 {
			continue
		}
		if all++; all >= from && all < from+most && size < mostOfTurns {
			lines = append(lines, bytes.Clone(read.Bytes()))
			size += len(read.Bytes())
		}
	}
	if errors.Is(read.Err(), bufio.ErrTooLong) {
		return nil, 0, &badRequestError{fmt.Sprintf("%s: turn %d is longer than %d MiB", episodeFile, all+1, longestTurn>>20)}
	}
	if err := read.Err(); err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", episodeFile, err)
	}
	return lines, all, nil
}

// turnOf makes a step of a line; what is in it need not be what is expected.
func turnOf(n int, line []byte, here string) step {
	out := step{ID: n, Anchor: stepAnchor(n), Source: "agent"}
	v, err := value.Decode(line)
	o, ok := v.(*value.Object)
	if err != nil || !ok {
		out.Results = []result{{Pieces: []piece{textPiece(string(line))}}}
		return out
	}
	for _, a := range actionsOf(o) {
		out.Calls = append(out.Calls, actionOf(a))
	}
	for _, what := range []string{"lines", "bytes"} {
		if k, ok := o.Get("omitted_" + what); ok {
			out.Message = append(out.Message, textPiece("Left out: "+value.Text(k)+" "+what))
		}
	}
	output, ok := member[*value.Object](o, "output")
	if ok {
		out.About, out.Results = aboutOutput(output), outputOf(n, output, here)
	}
	if failed, ok := member[value.Str](o, "error"); ok {
		out.Results = append(out.Results, result{Of: "error", Pieces: []piece{textPiece(string(failed))}})
	}
	return out
}

// member is a member of an object that is of a kind.
func member[V value.Value](o *value.Object, name string) (V, bool) {
	v, _ := o.Get(name)
	out, ok := v.(V)
	return out, ok
}

// actionsOf are the actions of a turn.
func actionsOf(o *value.Object) []*value.Object {
	list, several := member[value.List](o, "actions")
	if !several {
		one, _ := o.Get("action")
		list = value.List{one}
	}
	var actions []*value.Object
	for _, v := range list {
		if a, ok := v.(*value.Object); ok {
			actions = append(actions, a)
		}
	}
	return actions
}

func actionOf(a *value.Object) call {
	name, _ := member[value.Str](a, "name")
	arguments, ok := member[*value.Object](a, "arguments")
	if !ok {
		arguments = value.NewObject(0)
	}
	return call{Name: label(string(name)), Arguments: argumentsOf(arguments)}
}

// aboutOutput is what stands beside the number of a turn.
func aboutOutput(o *value.Object) []string {
	var about []string
	if x, ok := o.Get("reward"); ok {
		about = append(about, "reward "+label(value.Text(x)))
	}
	for _, name := range []string{"done", "truncated"} {
		if is, _ := member[value.Bool](o, name); bool(is) {
			about = append(about, name)
		}
	}
	return about
}

// outputOf is what was observed, what the evaluation told, and what went wrong.
func outputOf(n int, o *value.Object, here string) []result {
	var results []result
	var pieces []piece
	for i, c := range contentsOf(o) {
		pieces = append(pieces, contentOf(c, fmt.Sprintf("%s/%d-%d.png", here, n, i)))
	}
	if pieces != nil {
		results = append(results, result{Pieces: pieces})
	}
	if info, ok := member[*value.Object](o, "info"); ok {
		told := value.NewObject(info.Len())
		for name, v := range info.All() {
			if name != "profiling" { // times, which differ each time
				told.Set(name, v)
			}
		}
		if told.Len() > 0 {
			results = append(results, result{Of: "the evaluation", Pieces: []piece{jsonPiece(told)}})
		}
	}
	if failed, ok := member[*value.Object](o, "error"); ok {
		typ, _ := member[value.Str](failed, "error_type")
		text, _ := member[value.Str](failed, "exception_str")
		results = append(results, result{Of: "error", Pieces: []piece{textPiece(string(typ) + ": " + string(text))}})
	}
	return results
}

// contentsOf are the parts of what was observed.
func contentsOf(output *value.Object) value.List {
	obs, ok := member[*value.Object](output, "obs")
	if !ok {
		return nil
	}
	contents, _ := member[value.List](obs, "contents")
	return contents
}

// contentOf is one part of an observation; an image is at the address.
func contentOf(v value.Value, address string) piece {
	o, ok := v.(*value.Object)
	if !ok {
		return jsonPiece(v)
	}
	data, _ := o.Get("data")
	if _, isImage := pngOf(o); isImage {
		name, _ := member[value.Str](o, "name")
		return piece{Image: address, Alt: label(string(name))}
	}
	if text, ok := data.(value.Str); ok {
		return textPiece(string(text))
	}
	return jsonPiece(data)
}

func jsonPiece(v value.Value) piece {
	if v == nil {
		v = value.Null{}
	}
	return textPiece(string(value.AppendDumps(nil, v, value.DumpsOptions{Unicode: true, Indent: 2})))
}

// pngOf is the picture of content that is one.
func pngOf(content *value.Object) (data string, ok bool) {
	text, _ := member[value.Str](content, "data")
	return strings.CutPrefix(string(text), "data:image/png;base64,")
}

// serveEpisodeImage answers with a picture that was observed.
func (s *Server) serveEpisodeImage(w http.ResponseWriter, r *http.Request) error {
	_, _, dir, err := s.trialOf(r)
	if err != nil {
		return err
	}
	var turn, content int
	name := r.PathValue("image")
	if _, err := fmt.Sscanf(name, "%d-%d.png", &turn, &content); err != nil || name != fmt.Sprintf("%d-%d.png", turn, content) {
		return errNoPage
	}
	lines, _, err := readTurns(r.Context(), dir, turn, 1)
	if err != nil {
		return err
	}
	data, ok := pictureIn(lines, content)
	if !ok {
		return errNoPage
	}
	w.Header().Set("Content-Type", "image/png")
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
	_, _ = io.Copy(w, bytes.NewReader(data)) // whoever went away does not miss it
	return nil
}

// pictureIn is a picture of the first of the lines.
func pictureIn(lines [][]byte, content int) (data []byte, ok bool) {
	if len(lines) == 0 {
		return nil, false
	}
	v, err := value.Decode(lines[0])
	o, ok := v.(*value.Object)
	if err != nil || !ok {
		return nil, false
	}
	output, ok := member[*value.Object](o, "output")
	if !ok {
		return nil, false
	}
	contents := contentsOf(output)
	if content < 0 || content >= len(contents) {
		return nil, false
	}
	one, ok := contents[content].(*value.Object)
	if !ok {
		return nil, false
	}
	text, ok := pngOf(one)
	if !ok {
		return nil, false
	}
	data, err = base64.StdEncoding.DecodeString(text)
	return data, err == nil && http.DetectContentType(data) == "image/png"
}
