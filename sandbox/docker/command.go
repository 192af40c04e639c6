package docker

import (
	"cmp"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

//go:embed run.sh
var runScript string

//go:embed sweep.sh
var sweepScript string

// The variables that the wrapper gets: the word that frames the output, the
// command, and the mark of the command's daemons. Only the mark is left for the
// command to see.
const (
	frameVar = "PROCTOR_FRAME"
	countVar = "PROCTOR_ARGC"
	argVar   = "PROCTOR_ARG_"
	execVar  = "PROCTOR_EXEC"
)

// wrapped is a command as the engine is asked to run it.
func wrapped(spec sandbox.Spec, cmd sandbox.Command, word string) client.ExecCreateOptions {
	mode := "merged"
	if cmd.Stderr != nil {
		mode = "split"
	}
	// Shell text needs bash anyway, and bash hands on variables whose names
	// no shell accepts. -p keeps it from reading BASH_ENV twice.
	shell, argv := []string{"bash", "-p", "-c"}, []string{"bash", "-c", cmd.Shell}
	if len(cmd.Argv) > 0 {
		shell, argv = []string{"sh", "-c"}, cmd.Argv
	}
	env, exports := splitEnv(sandbox.MergeEnv(spec.Env, cmd.Env))
	script := exports + runScript
	if valid(argv) {
		env = append(env, countVar+"="+strconv.Itoa(len(argv)))
		for i, arg := range argv {
			env = append(env, argVar+strconv.Itoa(i)+"="+arg)
		}
	} else {
		script = positional(append([]string{mode}, argv...)) + script
	}
	return client.ExecCreateOptions{
		User:         cmp.Or(cmd.User, spec.User),
		WorkingDir:   cmp.Or(cmd.Dir, spec.Workdir),
		Env:          append(env, frameVar+"="+word, execVar+"="+engine.Secret()),
		Cmd:          append(shell, script, shell[0], mode),
		AttachStdin:  cmd.Stdin != nil,
		AttachStdout: true,
		AttachStderr: true,
	}
}

// splitEnv takes out what JSON cannot carry, values that are not UTF-8, and
// returns it as shell text.
func splitEnv(env []string) (plain []string, exports string) {
	var b strings.Builder
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if utf8.ValidString(entry) || !identifier(name) {
			plain = append(plain, entry)
			continue
		}
		fmt.Fprintf(&b, "_proctor_raw=%s; export %s=\"${_proctor_raw%%.}\"\n", raw(value), name)
	}
	return plain, b.String()
}

func identifier(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

func valid(args []string) bool {
	for _, a := range args {
		if !utf8.ValidString(a) {
			return false
		}
	}
	return true
}

// positional is shell text that sets the positional parameters byte by byte.
func positional(args []string) string {
	var b strings.Builder
	b.WriteString("set --\n")
	for _, a := range args {
		fmt.Fprintf(&b, "_proctor_raw=%s; set -- \"$@\" \"${_proctor_raw%%.}\"\n", raw(a))
	}
	return b.String()
}

// raw is shell text that gives any bytes, and one point that keeps line ends
// at their end.
func raw(s string) string {
	var b strings.Builder
	b.WriteString("$(printf '")
	for i := range len(s) {
		fmt.Fprintf(&b, "\\%03o", s[i])
	}
	b.WriteString(".')")
	return b.String()
}
