package atif

import (
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// HasImages reports whether a message or a result of a trajectory has an image;
// embedded subagents are not searched. The document need not be valid. (Section
// 6.5.)
func HasImages(document value.Value) bool {
	found := false
	eachImage(document, func(string, value.Value) { found = true })
	return found
}

// MissingImages names the images of a document that are files and do not exist.
// It searches documents that are not valid, too. exists is asked for paths
// relative to the trajectory's directory. (Section 6.4.)
func MissingImages(document value.Value, exists func(path string) bool) []Problem {
	var missing []Problem
	eachImage(document, func(where string, image value.Value) {
		path, ok := member(member(image, "source"), "path").(value.Str)
		if !ok || strings.Contains(string(path), "://") || exists(string(path)) {
			return
		}
		missing = append(missing, Problem{
			Location: root + where + ".source.path",
			Message:  "referenced image file does not exist: " + string(path),
		})
	})
	return missing
}

// eachImage calls visit for the image parts of messages and results.
func eachImage(document value.Value, visit func(where string, image value.Value)) {
	content := func(where string, v value.Value) {
		for j, p := range list(v) {
			if kind, _ := member(p, "type").(value.Str); kind == ImagePart {
				visit(fmt.Sprintf("%s[%d]", where, j), p)
			}
		}
	}
	for i, s := range list(member(document, "steps")) {
		content(fmt.Sprintf("steps[%d].message", i), member(s, "message"))
		for k, r := range list(member(member(s, "observation"), "results")) {
			content(fmt.Sprintf("steps[%d].observation.results[%d].content", i, k), member(r, "content"))
		}
	}
}

// member returns a member of an object, nil of everything else.
func member(v value.Value, key string) value.Value {
	o, ok := v.(*value.Object)
	if !ok {
		return nil
	}
	m, _ := o.Get(key)
	return m
}

func list(v value.Value) value.List {
	l, _ := v.(value.List)
	return l
}
