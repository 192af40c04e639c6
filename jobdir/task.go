package jobdir

import (
	"path"
	"regexp"
	"strings"
)

// Task is a task that a job has resolved its configuration to.
type Task struct {
	Config TaskConfig
	// Name is what filters and trial names call the task. Empty, it comes
	// from the configuration: the package's name, or the last part of the
	// path. Set it to the name of the resolved directory where that differs,
	// as for "." and for links.
	Name string
}

// IDName returns Name or what it defaults to.
func (t Task) IDName() string {
	switch {
	case t.Name != "":
		return t.Name
	case t.Config.Kind() == PackageTask:
		return *t.Config.Name
	case t.Config.Path == nil:
		return ""
	}
	return path.Base(*t.Config.Path)
}

// packageName is Harbor's rule for "org/name".
var packageName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*/[a-zA-Z0-9][a-zA-Z0-9._-]*$`)

func IsPackageName(s string) bool { return packageName.MatchString(s) && !strings.Contains(s, "..") }
