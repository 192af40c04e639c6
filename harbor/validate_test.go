package harbor_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/harbor"
)

// A task has every problem of its files, with the file and the place.
func TestValidate(t *testing.T) {
	t.Parallel()
	valid := map[string]string{
		"task.toml": "", "instruction.md": "do it", "environment/Dockerfile": "FROM debian", "tests/test.sh": "", "solution/solve.sh": "",
	}
	const noSolution = "warning: solution/solve.sh: there is no solution: agent oracle cannot show that the task can be solved"
	const noDefinition = "error: environment: nothing says how the environment is made: " +
		"add a Dockerfile, a docker-compose.yaml or docker_image under [environment] in task.toml"
	const noTime = " leave no time: each trial would end at once; want more than 0, or leave it out for "
	const empty = " is empty, which no engine takes for a limit: "
	const carriage = `it ends with a carriage return, with which the script does not run in Linux: sed -i 's/\r$//' `
	const unknownMode = "warning: tests/test.sh: the test script is missing; only a task with a separate verifier needs none"
	for _, c := range []struct {
		name  string
		files map[string]string // over those of a valid task; "-" removes one
		want  []string
	}{
		{"valid", nil, nil},
		{"nothing", map[string]string{"task.toml": "-", "instruction.md": "-", "environment/Dockerfile": "-", "tests/test.sh": "-", "solution/solve.sh": "-"}, []string{
			"error: task.toml: it cannot be read: stat DIR/task.toml: no such file or directory",
			"error: environment: the directory is missing",
			"error: instruction.md: the instruction is missing",
			unknownMode,
			noSolution,
		}},
		{"no TOML", map[string]string{"task.toml": "[agent]\ntimeout_sec =\n", "tests/test.sh": "-"}, []string{
			"error: task.toml: line 2, column 14: Invalid value (at line 2, column 14)",
			unknownMode,
		}},
		{"no TOML, and steps perhaps", map[string]string{"task.toml": "steps = [\n", "instruction.md": "-", "tests/test.sh": "-", "steps/one/instruction.md": "x"}, []string{
			"error: task.toml: line 1: Invalid value (at end of document)",
		}},
		{"files are missing", map[string]string{"instruction.md": "-", "environment/Dockerfile": "-", "environment/x": "", "tests/test.sh": "-", "solution/solve.sh": "-"}, []string{
			"error: environment: nothing says how the environment is made: add a Dockerfile, a docker-compose.yaml or docker_image under [environment] in task.toml",
			"error: instruction.md: the instruction is missing",
			"error: tests/test.sh: the test script is missing",
			noSolution,
		}},
		// A value that is invalid hides no file that is missing, and nothing is
		// said of what could depend on it.
		{"values and files", map[string]string{"task.toml": "x = 1\n[agent]\ntimeout_sec = \"soon\"\n[metadata]\n", "instruction.md": "-", "tests/test.sh": "-"}, []string{
			"warning: task.toml: line 1: x: unknown key, it is ignored",
			"error: task.toml: line 3: agent.timeout_sec: Input should be a valid number, unable to parse string as a number",
			"error: instruction.md: the instruction is missing",
			"error: tests/test.sh: the test script is missing",
		}},
		{"values of the tables that files depend on", map[string]string{
			"task.toml":      "[verifier]\ntimeout_sec = \"soon\"\nuser = 1.5\n[environment]\ncpus = \"many\"\n",
			"instruction.md": "-", "environment/Dockerfile": "-", "environment/x": "", "tests/test.sh": "-", "solution/solve.sh": "-",
		}, []string{
			"error: task.toml: line 2: verifier.timeout_sec: Input should be a valid number, unable to parse string as a number",
			"error: task.toml: line 3: verifier.user.str: Input should be a valid string",
			"error: task.toml: line 3: verifier.user.int: Input should be a valid integer, got a number with a fractional part",
			"error: task.toml: line 5: environment.cpus: Input should be a valid integer, unable to parse string as an integer",
			noDefinition,
			"error: instruction.md: the instruction is missing",
			"error: tests/test.sh: the test script is missing",
			noSolution,
		}},
		{"tables that contradict themselves", map[string]string{
			"task.toml":              "[verifier]\nallowed_hosts = [\"a\"]\n[environment]\nos = \"windows\"\nallowed_hosts = [\"a\"]\n",
			"environment/Dockerfile": "-", "environment/x": "",
		}, []string{
			"error: task.toml: line 1: verifier: Value error, allowed_hosts is only valid when network_mode='allowlist'.",
			"error: task.toml: line 3: environment: Value error, allowed_hosts is only valid when network_mode='allowlist'.",
			noDefinition,
			"error: tests/test.bat: the test script is missing",
			"warning: solution/solve.bat: there is no solution: agent oracle cannot show that the task can be solved",
		}},
		{"an image that is no text", map[string]string{"task.toml": "[environment]\ndocker_image = 1\n", "environment/Dockerfile": "-", "environment/x": ""}, []string{
			"error: task.toml: line 2: environment.docker_image: Input should be a valid string",
		}},
		{"values of steps", map[string]string{
			"task.toml": "[[steps]]\nx = 1\n[[steps]]\nname = \"two\"\n[steps.agent]\ntimeout_sec = \"soon\"\n" +
				"[[steps]]\nname = \"three\"\n[steps.verifier]\nenvironment_mode = 1\n",
			"instruction.md": "-", "tests/test.sh": "-",
		}, []string{
			"warning: task.toml: line 2: steps.0.x: unknown key, it is ignored",
			"error: task.toml: line 1: steps.0.name: Field required",
			"error: task.toml: line 6: steps.1.agent.timeout_sec: Input should be a valid number, unable to parse string as a number",
			"error: task.toml: line 10: steps.2.verifier.environment_mode: Input should be 'shared' or 'separate'",
			"error: steps/two/instruction.md: the instruction is missing",
			"warning: steps/two/tests/test.sh: the test script is missing; only a task with a separate verifier needs none",
			"error: steps/three/instruction.md: the instruction is missing",
			"warning: steps/three/tests/test.sh: the test script is missing; only a task with a separate verifier needs none",
		}},
		{"no valid step", map[string]string{"task.toml": "[[steps]]\nname = 1\n", "instruction.md": "-", "tests/test.sh": "-"}, []string{
			"error: task.toml: line 2: steps.0.name: Input should be a valid string",
		}},
		{"invalid environment", map[string]string{"task.toml": "[environment]\nos = 1\n", "instruction.md": "-", "environment/Dockerfile": "-", "environment/x": "", "tests/test.sh": "-"}, []string{
			"error: task.toml: line 2: environment.os: Input should be 'linux' or 'windows'",
			noDefinition,
			"error: instruction.md: the instruction is missing",
			"error: tests/test.sh: the test script is missing",
		}},
		{"no time", map[string]string{
			"task.toml": "[agent]\ntimeout_sec = 0\n[verifier]\ntimeout_sec = -1\n[environment]\nbuild_timeout_sec = nan\n[[steps]]\nname = \"one\"\n" +
				"[steps.agent]\ntimeout_sec = -0.5\n[steps.verifier]\ntimeout_sec = 0\n[steps.healthcheck]\ncommand = \"x\"\ntimeout_sec = 0\n",
			"instruction.md": "-", "steps/one/instruction.md": "x",
		}, []string{
			"warning: task.toml: line 2: agent.timeout_sec: 0 seconds" + noTime + "no limit",
			"warning: task.toml: line 4: verifier.timeout_sec: -1 seconds" + noTime + "600 seconds",
			"warning: task.toml: line 6: environment.build_timeout_sec: NaN seconds" + noTime + "600 seconds",
			"warning: task.toml: line 10: steps.0.agent.timeout_sec: -0.5 seconds" + noTime + "the task's limit",
			"warning: task.toml: line 12: steps.0.verifier.timeout_sec: 0 seconds" + noTime + "600 seconds",
		}},
		{"carriage returns", map[string]string{"tests/test.sh": "#!/bin/bash\r\ntrue\r\n", "solution/solve.sh": "#!/bin/sh\necho 'x\ry'\ntrue\r\n"}, []string{
			"warning: tests/test.sh: line 1: " + carriage + "DIR/tests/test.sh",
			"warning: solution/solve.sh: line 3: " + carriage + "DIR/solution/solve.sh",
		}},
		{"carriage returns of steps", map[string]string{
			"task.toml":      "[verifier]\nenvironment_mode = \"separate\"\n[[steps]]\nname = \"one\"\n[[steps]]\nname = \"two\"\n",
			"instruction.md": "-", "steps/one/instruction.md": "x", "steps/two/instruction.md": "x",
			"tests/test.sh": "\r\n", "steps/two/tests/test.sh": "\r\n", "steps/two/solution/solve.sh": "\r\n",
		}, []string{
			"warning: tests/test.sh: line 1: " + carriage + "DIR/tests/test.sh",
			"warning: steps/two/tests/test.sh: line 1: " + carriage + "DIR/steps/two/tests/test.sh",
			"warning: steps/two/solution/solve.sh: line 1: " + carriage + "DIR/steps/two/solution/solve.sh",
		}},
		{"carriage returns of Windows", map[string]string{"task.toml": "[environment]\nos = \"windows\"\n", "tests/test.bat": "x\r\n", "solution/solve.bat": "x\r\n"}, nil},
		{"limits of a compose file", map[string]string{"environment/docker-compose.yaml": "# ${CPUS}\na: $${CPUS} ${CPUS:-1} $CPUSET\nb: ${CPUS}\nc: $MEMORY\n"}, []string{
			"warning: environment/docker-compose.yaml: line 3: ${CPUS}" + empty + "it gets a value from cpus under [environment] in task.toml or from --override-cpus",
			"warning: environment/docker-compose.yaml: line 4: ${MEMORY}" + empty + "it gets a value from memory_mb under [environment] in task.toml or from --override-memory-mb",
		}},
		{"limits of a compose file that have values", map[string]string{
			"environment/docker-compose.yaml": "a: ${CPUS}\nb: ${MEMORY}\n", "environment/.env": "X=CPUS\nexport MEMORY=1G\n", "task.toml": "[environment]\ncpus = 1\n",
		}, nil},
		{"limits of a compose file by variables", map[string]string{
			"environment/docker-compose.yaml": "a: ${CPUS}\nb: ${MEMORY:-1G}\n", "task.toml": "[environment.env]\nCPUS = \"1\"\n",
		}, nil},
		{"invalid verifier", map[string]string{"task.toml": "[verifier]\nenvironment_mode = 1\n", "tests/test.sh": "-", "solution/solve.sh": "-"}, []string{
			"error: task.toml: line 2: verifier.environment_mode: Input should be 'shared' or 'separate'",
			unknownMode,
			noSolution,
		}},
		{"invalid steps", map[string]string{"task.toml": "steps = 1\n", "instruction.md": "-"}, []string{
			"error: task.toml: line 1: steps: Input should be a valid list",
			"error: instruction.md: the instruction is missing",
		}},
		{"invalid steps that exist", map[string]string{"task.toml": "steps = 1\n", "instruction.md": "-", "steps/one/instruction.md": "x"}, []string{
			"error: task.toml: line 1: steps: Input should be a valid list",
		}},
		{"steps", map[string]string{
			"task.toml":      "[[steps]]\nname = \"one\"\n[[steps]]\nname = \"two\"\n[[steps]]\nname = \"three\"\n",
			"instruction.md": "-", "tests/test.sh": "-", "steps/one/instruction.md": "", "steps/one/tests/test.sh": "", "steps/two/instruction.md": "\xff",
		}, []string{
			"warning: steps/one/instruction.md: the instruction is empty",
			"error: steps/two/instruction.md: it is not UTF-8 text: byte 0xff at offset 0, in line 1",
			"error: steps/two/tests/test.sh: the test script is missing",
			"error: steps/three/instruction.md: the instruction is missing",
			"error: steps/three/tests/test.sh: the test script is missing",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "task")
			files := maps.Clone(valid)
			maps.Copy(files, c.files)
			for name, text := range files {
				if text == "-" {
					continue
				}
				path := filepath.Join(dir, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			failed := false
			for _, p := range harbor.Validate(dir) {
				got = append(got, p.String())
				failed = failed || p.Severity == harbor.SeverityError
			}
			for i, text := range c.want {
				c.want[i] = strings.ReplaceAll(text, "DIR", dir)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if _, err := harbor.Load(dir, harbor.LoadOptions{}); err != nil && !failed {
				t.Errorf("no problem is an error, and loading fails: %v", err)
			}
		})
	}
}
