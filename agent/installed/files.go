package installed

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/logs"
	"github.com/proctor-run/proctor/atif"
)

// fileSuffix is that of agents' files.
const fileSuffix = ".toml"

// IsFile reports whether the name of an agent is the path of a file: it ends in ".toml", or
// has a slash in it.
func IsFile(name string) bool {
	return strings.HasSuffix(name, fileSuffix) || strings.ContainsAny(name, `/\`)
}

// Files is an entry for agents that are files of somebody's own: those whose path is given
// as the name, and those of a directory, by the file's name without ".toml"; the directory
// may be empty, or not there. What is wrong with a file is told when the agent is checked
// or made.
func Files(dir string) agent.Entry {
	return agent.Entry{Open: func(name string) (agent.Entry, bool) {
		file := name
		if !IsFile(name) {
			file = filepath.Join(dir, name+fileSuffix)
			if dir == "" || !isFile(file) {
				return agent.Entry{}, false
			}
		}
		return entryOf(name, file), true
	}}
}

// entryOf is the agent of a file under a name.
func entryOf(name, file string) agent.Entry {
	d, err := Load(file)
	if err != nil {
		return agent.Entry{
			Name: name, AnySetting: true, Check: func(agent.Config) error { return invalidf("%w", err) },
			Sandboxed: func(agent.Config) (agent.Agent, error) { return nil, err },
		}
	}
	e := d.Entry()
	e.Name = name
	return e
}

// InDirectory returns what the files of a directory describe, and what is wrong with those
// that cannot be read. A directory that is not there has none.
func InDirectory(dir string) ([]*Definition, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || dir == "" {
		return nil, nil
	}
	if err != nil {
		return nil, wrap(err, "looking for agents' files")
	}
	var all []*Definition
	var errs []error
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), fileSuffix) {
			continue
		}
		d, err := Load(filepath.Join(dir, e.Name()))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, d)
	}
	return all, errors.Join(errs...)
}

// reader of the definition's logs, and of what the program printed where that tells of
// failures; nil for none.
func (d *Definition) reader() logs.Reader {
	read := readers[d.Logs]
	if read == nil && len(d.Failures) == 0 {
		return nil
	}
	return func(dir *logs.Dir, in logs.Input) (*logs.Converted, error) {
		made := &logs.Converted{}
		if read != nil {
			var err error
			if made, err = read(dir, in); err != nil {
				return nil, err
			}
			nameModel(made.Trajectory, in.Model)
		}
		if said, typ := d.failure(dir.Read(d.Output)); typ != "" {
			made.Failure, made.FailureType = cmp.Or(made.Failure, said), typ
		}
		return made, nil
	}
}

// aliasProvider is what the files call the server of the model, where a program wants the
// name of a provider.
const aliasProvider = "proctor/"

// nameModel gives a model the name of the configuration where the program knows it by the
// alias.
func nameModel(t *atif.Trajectory, model string) {
	if t == nil || model == "" {
		return
	}
	name := nameOf(model).Name
	rename := func(known *string) *string {
		if known != nil && *known == aliasProvider+name {
			return &model
		}
		return known
	}
	t.Agent.ModelName = rename(t.Agent.ModelName)
	for i := range t.Steps {
		t.Steps[i].ModelName = rename(t.Steps[i].ModelName)
	}
}

// failureTail is how much of the end of what a program printed is searched, in bytes.
const failureTail = 64 << 10

// failure finds the first of the definition's failures that is in what the program printed,
// and returns the line with it and its type; an empty type for none.
func (d *Definition) failure(printed []byte) (said, typ string) {
	printed = printed[max(0, len(printed)-failureTail):]
	for _, f := range d.Failures {
		at := f.Pattern.FindIndex(printed)
		if at == nil {
			continue
		}
		from := bytes.LastIndexByte(printed[:at[0]], '\n') + 1
		line, _, _ := bytes.Cut(printed[from:], []byte("\n"))
		return cmp.Or(lastLine(string(line)), f.Type), f.Type
	}
	return "", ""
}
