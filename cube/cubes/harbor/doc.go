// Package harborcube offers Harbor task directories as tasks of CUBE's layer:
// the instruction is the first observation, a shell is the tool, and evaluating
// runs the task's verifier (CUBE server, section 3.2).
//
// [Register] adds a directory of tasks to a registry. What a task runs in is an
// environment of package environment: the one that a [TaskConfig] starts, or
// one that is running already, see [NewTask].
package harborcube
