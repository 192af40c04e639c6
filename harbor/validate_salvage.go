package harbor

import (
	"errors"

	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// maxSalvages bounds how often invalid values are taken out of a task.toml: what is
// around one may be invalid without it.
const maxSalvages = 8

// takeValid makes the configuration of what is valid in a task.toml.
func (v *validation) takeValid() {
	doc := v.written
	for round := range maxSalvages {
		config, _, err := schema.Validate[Config](doc, decodeConfig)
		if err == nil {
			v.task.Config, v.valid = config, doc
			return
		}
		invalid, ok := errors.AsType[*schema.Errors](err)
		if !ok {
			return
		}
		doc = doc.Clone()
		for _, e := range invalid.List {
			if round > 0 || !reduce(doc, e.Loc) {
				takeOut(doc, e.Loc)
			}
		}
		doc = withoutNulls(doc, false).(*value.Object)
	}
}

// reduce leaves of a table that is invalid as a whole, since its keys contradict each
// other, those by which the files of a task are judged. It reports false for all else.
func reduce(doc *value.Object, loc schema.Location) bool {
	if len(loc) != 1 {
		return false
	}
	var keep [2]string
	switch loc[0] {
	case "environment":
		keep = [...]string{"os", "docker_image"}
	case "verifier":
		keep = [...]string{"environment_mode", "environment"}
	default:
		return false
	}
	name, _ := loc[0].(string)
	at, _ := doc.Get(name)
	table, ok := at.(*value.Object)
	if !ok {
		return false
	}
	reduced := &value.Object{}
	for _, key := range keep {
		if item, ok := table.Get(key); ok {
			reduced.Set(key, item)
		}
	}
	doc.Set(name, reduced)
	return true
}

// takeOut puts null in the place of the invalid value at a location. Where a key is
// missing, or where the location goes on with the branches of a union, that is the
// deepest value around it.
func takeOut(doc *value.Object, loc schema.Location) {
	var at value.Value = doc
	remove := func() {}
	for _, part := range loc {
		switch container := at.(type) {
		case *value.Object:
			key, _ := part.(string)
			child, ok := container.Get(key)
			if !ok {
				remove()
				return
			}
			at, remove = child, func() { container.Set(key, nil) }
		case value.List:
			i, ok := part.(int)
			if !ok || i >= len(container) {
				remove()
				return
			}
			at, remove = container[i], func() { container[i] = nil }
		default:
			remove()
			return
		}
	}
	remove()
}

// lost reports whether task.toml has a value at a path, of which nothing is known
// because it, or something around it, is invalid.
func (v *validation) lost(path ...any) bool {
	if v.valid == nil {
		return true
	}
	var written, valid value.Value = v.written, v.valid
	for _, part := range path {
		w, ok := child(written, part)
		if !ok {
			return false
		}
		if valid, ok = child(valid, part); !ok {
			return true
		}
		written = w
	}
	return false
}

func child(v value.Value, part any) (value.Value, bool) {
	switch v := v.(type) {
	case *value.Object:
		key, _ := part.(string)
		return v.Get(key)
	case value.List:
		if i, ok := part.(int); ok && i < len(v) {
			return v[i], true
		}
	}
	return nil, false
}

// hadSteps reports whether task.toml lists steps, also if none of them is valid.
func (v *validation) hadSteps() bool {
	steps, _ := child(v.written, "steps")
	list, ok := steps.(value.List)
	return ok && len(list) > 0
}

// lostMode reports whether it is not known where the verifier of a step runs, or of
// a task without steps.
func (v *validation) lostMode(step *Step) bool {
	const table, mode, environment = "verifier", "environment_mode", "environment"
	if v.lost(table, mode) || v.lost(table, environment) {
		return true
	}
	for i := range v.task.Config.Steps {
		if step == &v.task.Config.Steps[i] {
			return v.lostSteps() || v.lost("steps", i, table, mode) || v.lost("steps", i, table, environment)
		}
	}
	return false
}

// lostSteps reports whether whole steps are invalid: the others have other places
// then than in task.toml.
func (v *validation) lostSteps() bool {
	written, _ := child(v.written, "steps")
	list, _ := written.(value.List)
	return len(list) != len(v.task.Config.Steps)
}
