package trial

import (
	"net/url"
	"strconv"
	"strings"
)

// cubeRoot is the first part of the paths of cubes' tasks.
const cubeRoot = "cube"

// CubePath names a task of a cube in trial configurations: "cube", the benchmark, the
// task's id and, behind an "@", its seed. Different tasks have different paths, and
// no part of one is a step to another directory: what would be, and "%" and "@", is
// written as URLs have it.
func CubePath(benchmark, taskID string, seed *int64) string {
	parts := append([]string{cubeRoot, escapePart(benchmark)}, escapeParts(taskID)...)
	path := strings.Join(parts, "/")
	if seed != nil {
		path += seedMark(*seed)
	}
	return path
}

// SeededID is a task's id with its seed, as results name it.
func SeededID(taskID string, seed *int64) string {
	if seed == nil {
		return taskID
	}
	return taskID + seedMark(*seed)
}

func seedMark(seed int64) string { return "@" + strconv.FormatInt(seed, 10) }

// CubeOf returns the benchmark of a path that CubePath made; ok is false for any
// other.
func CubeOf(path string) (benchmark string, ok bool) {
	rest, ok := strings.CutPrefix(path, cubeRoot+"/")
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, "/")
	return unescapePart(name), ok
}

func escapeParts(id string) []string {
	parts := strings.Split(id, "/")
	for i, part := range parts {
		parts[i] = escapePart(part)
	}
	return parts
}

// escapes are for characters that a part cannot have as they are: those that
// escapes and seeds are made of, and what separates or ends paths.
var escapes = strings.NewReplacer("%", "%25", "@", "%40", "/", "%2F", `\`, "%5C", "\x00", "%00")

// emptyPart is how an empty part is written.
const emptyPart = "%"

func escapePart(part string) string {
	switch part {
	case "":
		return emptyPart
	case ".", "..":
		return strings.ReplaceAll(part, ".", "%2E")
	}
	return escapes.Replace(part)
}

func unescapePart(part string) string {
	if part == emptyPart {
		return ""
	}
	if text, err := url.PathUnescape(part); err == nil {
		return text
	}
	return part
}
