package cubetest

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/proctor-run/proctor/cube"
)

// checkHooks finds methods that have the name of an optional hook but not its
// signature: they would never be called, and nothing else would say so.
func checkHooks(p cube.Problem) error {
	t := reflect.TypeOf(p)
	var errs []error
	// The names are constants at each call, so that the linker can still drop
	// methods that are not used.
	_, has := t.MethodByName("FilterActions")
	errs = append(errs, mismatch[cube.ActionFilter](p, has, "FilterActions"))
	_, has = t.MethodByName("PostprocessObs")
	errs = append(errs, mismatch[cube.ObsPostprocessor](p, has, "PostprocessObs"))
	_, has = t.MethodByName("Finished")
	errs = append(errs, mismatch[cube.Finisher](p, has, "Finished"))
	_, has = t.MethodByName("PrivilegedInfo")
	errs = append(errs, mismatch[cube.PrivilegedInformer](p, has, "PrivilegedInfo"))
	_, has = t.MethodByName("Status")
	errs = append(errs, mismatch[cube.StatusReporter](p, has, "Status"))
	_, has = t.MethodByName("BuildTool")
	errs = append(errs, mismatch[cube.ToolBuilder](p, has, "BuildTool"))
	_, has = t.MethodByName("Close")
	errs = append(errs, mismatch[cube.Closer](p, has, "Close"))
	_, has = t.MethodByName("EvaluateValue")
	errs = append(errs, mismatch[cube.ValueEvaluator](p, has, "EvaluateValue"))
	return errors.Join(errs...)
}

func mismatch[Hook any](p cube.Problem, has bool, name string) error {
	if _, ok := p.(Hook); ok || !has {
		return nil
	}
	return fmt.Errorf("method %s of %T does not have the signature of %s: it is never called", name, p, reflect.TypeFor[Hook]())
}
