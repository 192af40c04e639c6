package outcome

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// TrialStatus says how one trial ended, in the eyes of a consumer.
type TrialStatus string

// The statuses of a trial.
const (
	TrialCompleted TrialStatus = "completed"
	TrialErrored   TrialStatus = "errored"
	TrialUnsolved  TrialStatus = "failed"
)

// TrialRecord is what a consumer reads of one trial's directory.
type TrialRecord struct {
	Task, Name string
	Status     TrialStatus
	Score      *float64 // nil is null
	Reason     string   // as it stands in the record; "" if it is not text
	Error      string   // why the record could not be read
	// Stdout and Stderr are the files that the record names, relative to the
	// trial's directory; they may lead out of it.
	Stdout, Stderr string
	// StdoutFile and StderrFile are these by their names below the job's directory, "" for
	// what is not there and for what leads out of the trial's directory. Logs are the
	// trial's other logs: "agent/" with all files below it, sorted, then those of the trial,
	// its verifier and its exception, so far as they are there. [ReadTrials] finds them.
	StdoutFile, StderrFile string
	Logs                   []string
	// Harbor: it is a result as Harbor writes them, which has no record's members.
	Harbor bool
}

// maxRecordError bounds the text that says why a record could not be read.
const maxRecordError = 1000

// ReadTrial reads the content of a trial's result.json as consumers do (outcome
// mapping, section 7.2). task and name are used where the record has none. What
// cannot be used is an errored trial.
//
// Harbor's own trial results have neither score nor status at top level: of
// these, whatever their reward, a consumer sees a failed trial with score 0.
// Only records as the package ownrunner writes them are understood.
func ReadTrial(resultJSON []byte, task, name string) TrialRecord {
	v, err := value.Decode(resultJSON)
	obj, ok := v.(*value.Object)
	if err == nil && !ok {
		err = fmt.Errorf("expected an object, got %s", value.TypeName(v))
	}
	var score float64
	if err == nil {
		score, err = recordScore(obj)
	}
	if err != nil {
		text, _ := cut(err.Error(), maxRecordError)
		return TrialRecord{Task: task, Name: name, Status: TrialErrored, Reason: string(TrialResultMalformed), Error: text}
	}
	r := TrialRecord{
		Task: firstText(obj, task, "task_id", "task_name"), Name: firstText(obj, name, "trial_name", "name"),
		Status: recordStatus(obj, score), Score: &score,
		Stdout: textOf(obj, "stdout_path"), Stderr: textOf(obj, "stderr_path"),
	}
	r.Reason = textOf(obj, "reason_code")
	r.Harbor = obj.Has("agent_info") && obj.Has("verifier_result") && !obj.Has("status") && !obj.Has("score")
	return r
}

// missingTrial is a trial without result.json.
func missingTrial(task, name string) TrialRecord {
	return TrialRecord{Task: task, Name: name, Status: TrialErrored, Reason: string(TrialResultMissing)}
}

func textOf(obj *value.Object, key string) string {
	v, _ := obj.Get(key)
	s, _ := v.(value.Str)
	return string(s)
}

// firstText is str() of the first member that is truthy.
func firstText(obj *value.Object, fallback string, keys ...string) string {
	for _, key := range keys {
		v, _ := obj.Get(key)
		if s, ok := v.(value.Str); ok && s != "" {
			return string(s)
		}
		if truthy(v) {
			return value.Repr(v)
		}
	}
	return fallback
}

// recordScore looks for a score where records of several formats have one.
func recordScore(obj *value.Object) (float64, error) {
	for _, key := range []string{"score", "accuracy", "pass_rate"} {
		v, _ := obj.Get(key)
		if x, ok := number(v); ok {
			f, err := value.ToFloat(x)
			return f, err
		}
	}
	for _, key := range []string{"resolved", "is_resolved", "passed", "success"} {
		v, _ := obj.Get(key)
		if b, ok := v.(value.Bool); ok {
			return toFloat(b)
		}
	}
	v, _ := obj.Get("metrics")
	metrics, ok := v.(*value.Object)
	if !ok {
		return 0, nil
	}
	for _, v := range metrics.All() {
		if x, ok := number(v); ok {
			f, err := value.ToFloat(x)
			return f, err
		}
	}
	return 0, nil
}

func recordStatus(obj *value.Object, score float64) TrialStatus {
	v, _ := obj.Get("status")
	if !truthy(v) {
		v, _ = obj.Get("result")
	}
	text, _ := v.(value.Str)
	switch lower(value.Strip(string(text))) {
	case "completed", "passed", "success", "resolved":
		return TrialCompleted
	case "errored", "error":
		return TrialErrored
	case "failed", "fail", "unresolved":
		return TrialUnsolved
	}
	if score >= 1 {
		return TrialCompleted
	}
	return TrialUnsolved
}

// trialsDir is where records lie, if it is there; recordFile is their name.
const (
	trialsDir  = "trials"
	recordFile = "result.json"
)

// locateTrials returns the directories of a job's trials, in order: those in
// "trials" if that is a directory, else all directories below the job's that
// hold a result.json (outcome mapping, section 7.1).
func locateTrials(job fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(job, trialsDir)
	if err == nil {
		var dirs []string
		for _, e := range entries {
			if info, err := fs.Stat(job, path.Join(trialsDir, e.Name())); err == nil && info.IsDir() {
				dirs = append(dirs, path.Join(trialsDir, e.Name()))
			}
		}
		return dirs, nil
	}
	var dirs []string
	err = fs.WalkDir(job, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Name() == recordFile && path.Dir(name) != "." {
			dirs = append(dirs, path.Dir(name))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("locating trials: %w", err)
	}
	slices.SortFunc(dirs, func(a, b string) int {
		return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
	})
	return dirs, nil
}

// ReadTrials reads the records of all trials of a job directory, which a
// consumer attempted for one task. Files that cannot be read are errored trials;
// the error says why the directory could not be listed.
func ReadTrials(job fs.FS, task string) ([]TrialRecord, error) {
	dirs, err := locateTrials(job)
	if err != nil {
		return nil, err
	}
	records := make([]TrialRecord, len(dirs))
	for i, dir := range dirs {
		data, err := fs.ReadFile(job, path.Join(dir, recordFile))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			records[i] = missingTrial(task, path.Base(dir))
		case err != nil:
			text, _ := cut(err.Error(), maxRecordError)
			records[i] = TrialRecord{Task: task, Name: path.Base(dir), Status: TrialErrored, Reason: string(TrialResultMalformed), Error: text}
		default:
			records[i] = ReadTrial(data, task, path.Base(dir))
		}
		records[i].findLogs(job, dir)
	}
	return records, nil
}
