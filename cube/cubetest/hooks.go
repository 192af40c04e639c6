package cubetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/proctor-run/proctor/cube"
)

// hook is an optional method of a type that authors write.
type hook struct {
	method string
	of     reflect.Type // the interface that has it
}

func hookOf[Interface any](method string) hook { return hook{method, reflect.TypeFor[Interface]()} }

// validator is the optional ability of every typed object.
type validator interface{ Validate() error }

// problemHooks finds methods of a problem that look like hooks and are never
// called: a compiler does not miss them, and nothing else would say so.
func problemHooks(p cube.Problem) error {
	return uncalled(p, reflect.TypeFor[*cube.TaskBase[cube.Metadata]](), []hook{
		hookOf[cube.ActionFilter]("FilterActions"),
		hookOf[cube.ObsPostprocessor]("PostprocessObs"),
		hookOf[cube.Finisher]("Finished"),
		hookOf[cube.PrivilegedInformer]("PrivilegedInfo"),
		hookOf[cube.StatusReporter]("Status"),
		hookOf[cube.ToolBuilder]("BuildTool"),
		hookOf[cube.Closer]("Close"),
		hookOf[cube.ValueEvaluator]("EvaluateValue"),
		hookOf[validator]("Validate"),
	})
}

// taskConfigHooks is problemHooks for task configs.
func taskConfigHooks(c cube.TaskConfig) error {
	return uncalled(c, reflect.TypeFor[*cube.TaskConfigBase[cube.Metadata]](), []hook{
		hookOf[cube.InstallVerifier]("VerifyInstalled"),
		hookOf[cube.ExecutionCachePlacer]("ExecutionCacheDir"),
		hookOf[validator]("Validate"),
	})
}

// configHooks is problemHooks for benchmark configs, those of a composite's
// parts too.
func configHooks(c cube.BenchmarkConfig) error {
	if composite, ok := c.(*cube.CompositeBenchmarkConfig); ok {
		var errs []error
		for _, part := range composite.SubBenchConfigs {
			errs = append(errs, configHooks(part))
		}
		return errors.Join(errs...)
	}
	return uncalled(c, reflect.TypeFor[*cube.BenchmarkConfigBase](), []hook{
		hookOf[cube.Installer]("Install"),
		hookOf[cube.Uninstaller]("Uninstall"),
		hookOf[cube.TaskConfigurer]("ConfigureTask"),
		hookOf[cube.CachePlacer]("CacheDir"),
		hookOf[cube.Parametrised]("Define"),
		hookOf[cube.Parametrised]("DefinitionKey"),
		hookOf[validator]("Validate"),
	})
}

// uncalled reports methods of v with the name of a hook but another signature,
// and methods whose name is nearly that of a hook that v does not have. Methods
// of base are the framework's own.
func uncalled(v any, base reflect.Type, hooks []hook) error {
	t := reflect.TypeOf(v)
	var errs []error
	for i := range t.NumMethod() {
		name := t.Method(i).Name
		if _, own := base.MethodByName(name); own {
			continue
		}
		exact := slices.IndexFunc(hooks, func(h hook) bool { return h.method == name })
		if exact >= 0 {
			if h := hooks[exact]; !t.Implements(h.of) {
				errs = append(errs, fmt.Errorf("method %s of %T does not have the signature of %s: it is never called", name, v, h.of))
			}
			continue
		}
		for _, h := range hooks {
			if _, has := t.MethodByName(h.method); !has && misspells(name, h.method) {
				errs = append(errs, fmt.Errorf("method %s of %T is never called: is it meant to be %s of %s?", name, v, h.method, h.of))
			}
		}
	}
	return errors.Join(errs...)
}

// misspells reports whether a method's name looks like an attempt at a hook's:
// the same words in another order or case, with "Get", "Is", "Set" or "On" in
// front, without an ending, or with a letter wrong.
func misspells(name, hook string) bool {
	got, want := canonical(name), canonical(hook)
	short, long := got, want
	if len(short) > len(long) {
		short, long = long, short
	}
	const ending = 2
	if strings.HasPrefix(long, short) && len(long)-len(short) <= ending {
		return true
	}
	const lettersPerMistake = 7
	return len(want) > len("close") && distance(got, want) <= max(1, len(want)/lettersPerMistake)
}

// canonical returns the words of a name in lower case and in order, without
// words that add nothing.
func canonical(name string) string {
	words := strings.FieldsFunc(splitWords(name), unicode.IsSpace)
	if len(words) > 1 && slices.Contains([]string{"get", "is", "set", "on", "do", "task", "load"}, words[0]) {
		words = words[1:]
	}
	slices.Sort(words)
	return strings.Join(words, "")
}

// splitWords puts a space before every capital letter and lowers it.
func splitWords(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) || r == '_' {
			b.WriteByte(' ')
		}
		if r != '_' {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// distance is how many letters have to be put in, left out or changed to turn a
// into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
