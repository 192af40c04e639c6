package terminalbench

import (
	"regexp"
	"strings"

	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

var (
	copiesTests    = regexp.MustCompile(`(?:COPY|ADD) (?:\./)?tests`)
	copiesSolution = regexp.MustCompile(`(?:COPY|ADD) (?:\./)?solution\.sh`)
	fromPlatform   = regexp.MustCompile(`(?m)^(FROM\s+)--platform=\S+`)
	from           = regexp.MustCompile(`(?m)^(FROM\s+)`)
)

const testDirTemplate = "TEST_DIR=${T_BENCH_TEST_DIR}"

// extendDockerfile puts into a Dockerfile what the compose file says of the
// main service, and beside it the files that it copies.
func (t *task) extendDockerfile(name string) error {
	text, err := t.readOutput(name)
	if err != nil {
		return err
	}
	if copiesTests.MatchString(text) && t.has("tests") {
		if err := t.copyTree("tests", "environment/tests"); err != nil {
			return err
		}
	}
	if copiesSolution.MatchString(text) && t.has("solution.sh") {
		if err := t.copyFile("solution.sh", "environment/solution.sh"); err != nil {
			return err
		}
	}
	if platform := textOf(t.compose.main, "platform"); platform != "" {
		text = setPlatform(text, platform)
		t.print("[%s] Set --platform=%s on FROM", t.name, platform)
	}
	lines := dockerfileLines(t.compose.main)
	if len(lines) > 0 {
		list := make(value.List, len(lines))
		for i, line := range lines {
			list[i] = value.Str(line)
		}
		t.print("[%s] Moved to Dockerfile: %s", t.name, value.Repr(list))
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	text += "\n# Mapped from docker-compose.yaml\nENV TEST_DIR=/tests\n"
	for _, line := range lines {
		text += line + "\n"
	}
	return t.write(name, text)
}

// readOutput reads a text that an earlier step has copied.
func (t *task) readOutput(name string) (string, error) {
	data, err := t.out.ReadFile(name)
	if err != nil {
		return "", err
	}
	return value.ReadText(data)
}

// setPlatform changes the platforms that FROM lines name; where none does, all
// get one.
func setPlatform(text, platform string) string {
	option := "${1}--platform=" + strings.ReplaceAll(platform, "$", "$$")
	if fromPlatform.MatchString(text) {
		return fromPlatform.ReplaceAllString(text, option)
	}
	return from.ReplaceAllString(text, option+" ")
}

// dockerfileLines returns what a service's settings are in a Dockerfile.
func dockerfileLines(service *value.Object) []string {
	lines := environmentLines(service)
	if dir := textOf(service, "working_dir"); dir != "" && !strings.Contains(dir, "${") {
		lines = append(lines, "WORKDIR "+dir)
	}
	for _, port := range listOf(service, "expose") {
		lines = append(lines, "EXPOSE "+str(port))
	}
	if entrypoint := listOf(service, "entrypoint"); len(entrypoint) > 0 {
		lines = append(lines, "ENTRYPOINT "+string(value.AppendDumps(nil, entrypoint, value.DumpsOptions{})))
	}
	return lines
}

// environmentLines reads both forms of an environment. Values are not quoted.
func environmentLines(service *value.Object) []string {
	var lines []string
	add := func(entry string) {
		if entry != testDirTemplate {
			lines = append(lines, "ENV "+entry)
		}
	}
	environment, _ := service.Get("environment")
	switch environment := environment.(type) {
	case value.List:
		for _, entry := range environment {
			add(str(entry))
		}
	case *value.Object:
		for key, v := range environment.All() {
			add(key + "=" + str(v))
		}
	}
	return lines
}

// textOf returns a setting as text; a missing one, or null, is empty.
func textOf(service *value.Object, key string) string {
	v, _ := service.Get(key)
	if value.IsNull(v) {
		return ""
	}
	return str(v)
}

// listOf returns a setting as a list; a scalar is a list of one.
func listOf(service *value.Object, key string) value.List {
	v, _ := service.Get(key)
	if value.IsNull(v) {
		return nil
	}
	if list, ok := v.(value.List); ok {
		return list
	}
	return value.List{v}
}

// str is Python's str of a value.
func str(v value.Value) string {
	switch v := v.(type) {
	case value.Str:
		return string(v)
	case schema.Temporal:
		return str(v.Value)
	}
	return value.Repr(v)
}
