package sandboxes

import (
	"context"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci"
)

// Auto is the name that lets Choose choose.
const Auto = jobcli.Auto

// Entry is a backend that can be chosen by name. A backend is added to a program
// with one entry, in the list that is given to [Attach] or as [Options].Backends:
//
//	sandboxes.Attach(program, append(sandboxes.Builtin(), sandboxes.Entry{
//		Name: "mine",
//		New: func(ctx context.Context, o sandboxes.Options) (sandbox.Backend, func() error, error) {
//			b, err := mine.New()
//			return b, b.Close, err
//		},
//	}))
type Entry struct {
	// Name chooses the backend, and is what its Name returns.
	Name string
	// Summary says in a few words what it is, for help; it may be empty.
	Summary string
	// New makes the backend and does not look whether it works here. release frees
	// what it holds open.
	New func(context.Context, Options) (b sandbox.Backend, release func() error, err error)
	// Runtimes lists what Options.Runtime may be, and whether each works here; nil
	// means that there is nothing to choose.
	Runtimes func(context.Context, Options) ([]oci.RuntimeStatus, error)
	// Auto: the backend is taken where none is named, if it works and no entry
	// before it is taken.
	Auto bool
	// Steady: what Check finds stays true until the machine starts anew, so that it
	// is not tried again.
	Steady bool
	// NeedsImage: nothing can be tried in the backend until somebody names an image.
	NeedsImage bool
	// With names another entry that has the same runtimes, and finds what dead
	// processes left behind in this one too.
	With string
}

// Registry lists the backends that can be chosen; of entries with the same name
// the last one counts. nil is [Builtin].
type Registry []Entry

// Builtin lists the backends that come with proctor.
func Builtin() Registry {
	return Registry{
		{Name: sandbox.BackendDocker, New: newDockerBackend, Auto: true},
		{Name: sandbox.BackendSandbox, Summary: "no daemon", New: newOCIOf(sandbox.BackendSandbox), Auto: true, Steady: true, NeedsImage: true, With: sandbox.BackendHost},
		{Name: sandbox.BackendHost, Summary: "this machine's own files, for trusted agents", New: newOCIOf(sandbox.BackendHost), Steady: true, Runtimes: ociRuntimes},
	}
}

// Entries returns what can be chosen, each name once, in order.
func (r Registry) Entries() []Entry {
	if r == nil {
		r = Builtin()
	}
	var out []Entry
	for _, e := range r {
		if i := slices.IndexFunc(out, func(o Entry) bool { return o.Name == e.Name }); i >= 0 {
			out[i] = e
			continue
		}
		out = append(out, e)
	}
	return out
}

// Names returns the names that can be chosen, in order.
func (r Registry) Names() []string { return names(r.Entries()) }

// Usage lists the names with their summaries, for the help of a flag.
func (r Registry) Usage() string {
	list := []string{Auto}
	for _, e := range r.Entries() {
		if e.Summary != "" {
			e.Name += " (" + e.Summary + ")"
		}
		list = append(list, e.Name)
	}
	return strings.Join(list, ", ")
}

// find returns the entry of a name. The error is meant for the person who chose
// it.
func (r Registry) find(name string) (Entry, error) {
	for _, e := range r.Entries() {
		if e.Name == name {
			return e, nil
		}
	}
	return Entry{}, exitcode.WithHint(exitcode.Usagef("environment %q cannot be run here", name), "choose one of these with -e: %s", strings.Join(r.Names(), ", "))
}

// HasRuntimes reports whether an entry has runtimes to choose.
func (r Registry) HasRuntimes(e Entry) bool {
	if e.Runtimes == nil && e.With != "" {
		e, _ = r.find(e.With)
	}
	return e.Runtimes != nil
}

// withRuntimes lists the entries that have runtimes to choose.
func (r Registry) withRuntimes() []Entry {
	return slices.DeleteFunc(r.Entries(), func(e Entry) bool { return !r.HasRuntimes(e) })
}

func names(entries []Entry) []string {
	var list []string
	for _, e := range entries {
		list = append(list, e.Name)
	}
	return list
}
