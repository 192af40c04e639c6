package harbor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/value"
)

// tree is a task directory as files; a name that ends in a slash is a
// directory.
type tree map[string]string

// minimal is the task of the Harbor task format, section 2.3.
func minimal() tree {
	return tree{
		"task.toml": "schema_version = \"1.3\"\n", "instruction.md": "Create hello.txt.\n",
		"environment/Dockerfile": "FROM debian:trixie-slim\nWORKDIR /app\n",
		"tests/test.sh":          "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n",
		"solution/solve.sh":      "#!/bin/bash\necho hi > hello.txt\n",
	}
}

func (f tree) with(name, content string) tree { f[name] = content; return f }

func (f tree) without(prefix string) tree {
	for name := range f {
		if strings.HasPrefix(name, prefix) {
			delete(f, name)
		}
	}
	return f
}

// at writes the tree to a directory my-task.
func (f tree) at(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(realTempDir(t), "my-task")
	mkdir(t, dir)
	for name, content := range f {
		if strings.HasSuffix(name, "/") {
			mkdir(t, filepath.Join(dir, name))
			continue
		}
		write(t, filepath.Join(dir, filepath.FromSlash(name)), []byte(content), 0o644)
	}
	return dir
}

// says checks whether a directory is a valid task, with and without
// verification, and how loading it fails; "" for not at all.
func (f tree) says(t *testing.T, valid, unverified bool, failure string) *harbor.Task {
	t.Helper()
	dir := f.at(t)
	if got := harbor.IsValidDir(dir, false); got != valid {
		t.Errorf("valid: %v, want %v", got, valid)
	}
	if got := harbor.IsValidDir(dir, true); got != unverified {
		t.Errorf("valid with verification disabled: %v, want %v", got, unverified)
	}
	task, err := harbor.Load(dir, harbor.LoadOptions{})
	if (err == nil) != (failure == "") || err != nil && !strings.Contains(err.Error(), failure) {
		t.Errorf("loading: %v, want %q", err, failure)
	}
	return task
}

const minimalSum = "01782e8b8cdeff98a98fb37aecd80367cbc4ec27cea8636602749ead6ad2d271"

// checksum is the checksum of a directory, or its failure.
func checksum(t *testing.T, dir string) string {
	t.Helper()
	sum, err := harbor.Checksum(dir)
	if err != nil {
		return err.Error()
	}
	return sum
}

// config parses a task.toml; a failure must say all of the texts.
func config(t *testing.T, toml string, says ...string) harbor.Config {
	t.Helper()
	c, _, err := harbor.ParseConfig([]byte(toml))
	if (err == nil) != (len(says) == 0) {
		t.Errorf("%s\n%v", toml, err)
	}
	for _, text := range says {
		if err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%s\nthe error does not say %q: %v", toml, text, err)
		}
	}
	return c
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestChecklist has one subtest for each row of the acceptance checklist of the
// Harbor task format that concerns files alone: rows 1 to 35, 75 and their
// like. Rows 36 to 75 are in package trial and in the program's tests, 76 in
// package terminalbench; docs/compatibility.md lists them all.
func TestChecklist(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]func(*testing.T){
		"row 01 minimal tree": func(t *testing.T) {
			task := minimal().says(t, true, true, "")
			equal(t, "name", task.Name, "my-task")
			equal(t, "checksum", checksum(t, task.Dir), minimalSum)
		},
		"row 02 no environment": func(t *testing.T) { minimal().without("environment").says(t, false, false, "") },
		"row 03 no tests": func(t *testing.T) {
			minimal().without("tests").says(t, false, true, "declares [environment].os = 'linux' but does not contain tests/test.sh.")
		},
		"row 04 batch file": func(t *testing.T) {
			batch := func() tree { return minimal().without("tests").with("tests/test.bat", "") }
			batch().says(t, false, true, "tests/test.sh")
			batch().with("task.toml", "[environment]\nos = \"Windows\"\n").says(t, true, true, "")
		},
		"row 05 separate verifier without tests": func(t *testing.T) {
			minimal().without("tests").with("task.toml", "[verifier.environment]\ndocker_image = \"x\"\n").says(t, true, true, "")
		},
		"row 06 steps": func(t *testing.T) {
			steps := func() tree {
				return minimal().with("task.toml", "[[steps]]\nname = \"a\"\n[[steps]]\nname = \"b\"\n").
					with("steps/a/instruction.md", "").with("steps/a/tests/test.sh", "").with("steps/b/instruction.md", "")
			}
			steps().says(t, true, true, "")
			steps().without("tests/").says(t, false, true, "step 'b' does not contain an OS-compatible test script. Expected steps/b/tests/test.sh or tests/test.sh.")
		},
		"row 07 separate steps": func(t *testing.T) {
			step := func(toml string) tree {
				return minimal().without("tests").with("steps/a/instruction.md", "").with("task.toml", toml)
			}
			step("[[steps]]\nname = \"a\"\n[steps.verifier]\nenvironment_mode = \"separate\"\n").says(t, true, true, "")
			step("[verifier]\nenvironment_mode = \"separate\"\n[[steps]]\nname = \"a\"\n[steps.verifier]\nenvironment_mode = \"shared\"\n").
				says(t, false, true, "step 'a' does not contain an OS-compatible test script")
		},
		"row 08 no steps": func(t *testing.T) {
			minimal().with("task.toml", "steps = []\n").without("instruction.md").says(t, false, false, "is missing instruction.md.")
		},
		"row 09 canaries": func(t *testing.T) {
			task := minimal().with("instruction.md", "<!-- a Canary x -->\n# canary y\n\n  \nText\n# canary later\n").says(t, true, true, "")
			equal(t, "instruction", task.Instruction, "Text\n# canary later\n")
		},
		"row 10 line ends": func(t *testing.T) {
			equal(t, "instruction", minimal().with("instruction.md", "a\r\nb\rc\n").says(t, true, true, "").Instruction, "a\nb\nc\n")
		},
		"row 11 extra instructions": func(t *testing.T) {
			dir := minimal().with("instruction.md", "one").at(t)
			two, three := filepath.Join(dir, "two.md"), filepath.Join(dir, "three.md")
			write(t, two, []byte("# canary two"), 0o644)
			write(t, three, []byte("three\n"), 0o644)
			task, err := harbor.Load(dir, harbor.LoadOptions{ExtraInstructions: []string{two, three}})
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "instruction", task.Instruction, "one\n\n# canary two\n\nthree\n")
			_, err = harbor.Load(dir, harbor.LoadOptions{ExtraInstructions: []string{"gone.md"}})
			assertRaised(t, err, exception.FileNotFoundError, "Extra instruction file not found: gone.md")
		},
		"row 12 package name": func(t *testing.T) {
			task := minimal().with("task.toml", "[task]\nname = \"org/pkg\"\n").says(t, true, true, "")
			equal(t, "names", task.Name+" "+task.ShortName, "org/pkg pkg")
		},
		"row 13 dataset": func(t *testing.T) {
			root := filepath.Join(realTempDir(t), "set")
			plantTask(t, filepath.Join(root, "a"), "")
			plantTask(t, filepath.Join(root, "b"), "")
			mkdir(t, filepath.Join(root, "invalid"))
			write(t, filepath.Join(root, "file"), nil, 0o644)
			found, err := harbor.Discover(root, false)
			if err != nil || found.Source != "set" || len(found.Dirs) != 2 {
				t.Errorf("%+v, %v", found, err)
			}
		},
		"row 14 filters": func(t *testing.T) {
			kept, err := harbor.Filter{Include: []string{"web-*"}}.Apply([]string{"web-1", "db", "web-2"})
			if err != nil || !slices.Equal(kept, []int{0, 2}) {
				t.Errorf("%v, %v", kept, err)
			}
			_, err = harbor.Filter{Include: []string{"x*"}}.Apply([]string{"b", "a"})
			assertRaised(t, err, exception.ValueError, "No tasks matched the filter(s) ['x*']. There are 2 tasks available in this dataset. Example task names: ['a', 'b']")
		},
		"row 15 one empty file": func(t *testing.T) {
			equal(t, "checksum", checksum(t, tree{"a": ""}.at(t)), "c25a1ca9bdfe5fa6e8b9c07d99df9543995d8306761cad261d7170fee8f42b70")
		},
		"row 16 order and nesting": func(t *testing.T) {
			equal(t, "order", checksum(t, tree{"a": "1", "b": "2", "c": "3"}.at(t)), "80be66bcd33868b15492d5ed7eb9bf065b8f00b4d4fbfe652f84126ecb8f28bb")
			equal(t, "nesting", checksum(t, tree{"d/e/f.txt": "x", "g.txt": "y"}.at(t)), "d5b70054184b129cc2599dd976ef9df3d201b932b27296c9da460c2c1778f3a4")
			equal(t, "task", checksum(t, minimal().at(t)), minimalSum)
		},
		"row 17 mode": func(t *testing.T) {
			dir := minimal().at(t)
			if err := os.Chmod(filepath.Join(dir, "tests", "test.sh"), 0o755); err != nil {
				t.Fatal(err)
			}
			equal(t, "checksum", checksum(t, dir), minimalSum)
		},
		"row 18 empty directories": func(t *testing.T) {
			equal(t, "checksum", checksum(t, minimal().with("empty/in/empty/", "").at(t)), minimalSum)
		},
		"row 19 dangling link": func(t *testing.T) {
			dir := minimal().at(t)
			link(t, "nowhere", filepath.Join(dir, "dangling"))
			equal(t, "checksum", checksum(t, dir), minimalSum)
		},
		"row 20 link and copy": func(t *testing.T) {
			const want = "fe5db5f1bec409766d7d0e3d22d6394949b02f93cd11488ca1f23dfa9c3aca99"
			dir := minimal().at(t)
			link(t, "test.sh", filepath.Join(dir, "tests", "again.sh"))
			equal(t, "link", checksum(t, dir), want)
			equal(t, "copy", checksum(t, minimal().with("tests/again.sh", minimal()["tests/test.sh"]).at(t)), want)
		},
		"row 21 ancestor link and empty tree": func(t *testing.T) {
			dir := minimal().at(t)
			link(t, "..", filepath.Join(dir, "tests", "up"))
			if got := checksum(t, dir); !strings.HasPrefix(got, "Symlink recursion: Real path '"+dir+"' was encountered at '") {
				t.Error(got)
			}
			empty := tree{"x/": ""}.at(t)
			equal(t, "empty tree", checksum(t, empty), empty+": Nothing to hash")
		},
		"row 22 name": func(t *testing.T) {
			if checksum(t, tree{"a": ""}.at(t)) == checksum(t, tree{"b": ""}.at(t)) {
				t.Error("a file's name does not change the checksum")
			}
		},
		"row 23 empty file": func(t *testing.T) {
			var cases []configCase
			vector(t, "tasks/task-config.json", &cases)
			first := cases[0]
			c := config(t, first.TOML)
			if diff := cmp.Diff(compact(t, first.JSON), string(value.AppendPydantic(nil, c.JSON(), 0))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		},
		"row 24 version": func(t *testing.T) {
			equal(t, "version", config(t, "version = \"1.0\"\n").SchemaVersion, "1.0")
			equal(t, "both", config(t, "version = \"1.0\"\nschema_version = \"1.2\"\n").SchemaVersion, "1.2")
		},
		"row 25 memory": func(t *testing.T) {
			for text, want := range map[string]string{"memory = \"1.5g\"": "1536", "memory = \"2047K\"": "1", "memory = 2048": "None", "memory = \"1G\"\nmemory_mb = 1024": "1024"} {
				c := config(t, "[environment]\n"+text+"\n")
				got := "None"
				if c.Environment.MemoryMB != nil {
					got = c.Environment.MemoryMB.String()
				}
				equal(t, text, got, want)
			}
			config(t, "[environment]\nmemory = \"2GB\"\n", "Invalid size format: 2GB.")
			config(t, "[environment]\nmemory = \"2G\"\nmemory_mb = 1024\n", "Conflicting 'memory' and 'memory_mb' values: memory='2G' (2048 MB) != memory_mb=1024.")
		},
		"row 26 allow_internet": func(t *testing.T) {
			c := config(t, "[environment]\nallow_internet = false\n")
			equal(t, "mode", c.Environment.Network.Mode, harbor.NoNetwork)
			if text := string(value.AppendPydantic(nil, c.JSON(), 0)); strings.Contains(text, "allow_internet") || strings.Contains(string(c.TOML()), "allow_internet") {
				t.Errorf("it is written: %s", text)
			}
			equal(t, "explicit", config(t, "[environment]\nallow_internet = false\nnetwork_mode = \"public\"\n").Environment.Network.Mode, harbor.Public)
		},
		"row 27 allowed hosts": rowAllowedHosts,
		"row 28 modes":         rowModes,
		"row 29 MCP servers": func(t *testing.T) {
			const server = "[[environment.mcp_servers]]\nname = \"a\"\n"
			s := config(t, server+"url = \"u\"\n").Environment.MCPServers[0]
			equal(t, "defaults", fmt.Sprint(s.Transport, len(s.Args), s.Command), "sse0 <nil>")
			equal(t, "http", config(t, server+"transport = \"http\"\nurl = \"u\"\n").Environment.MCPServers[0].Transport, harbor.TransportStreamableHTTP)
			config(t, server, "'url' is required for transport 'sse'")
			config(t, server+"transport = \"stdio\"\n", "'command' is required for transport 'stdio'")
		},
		"row 30 user": func(t *testing.T) {
			equal(t, "true", config(t, "[agent]\nuser = true\n").Agent.User.String(), "1")
			c := config(t, "[agent]\nuser = \"1000\"\n[verifier]\nuser = 1000\n")
			text := string(value.AppendPydantic(nil, c.JSON(), 0))
			if !strings.Contains(text, `"user":"1000"`) || !strings.Contains(text, `"user":1000`) {
				t.Error(text)
			}
		},
		"row 31 unknown keys": func(t *testing.T) {
			_, report, err := harbor.ParseConfig([]byte("x = 1\n[agent]\nx = 1\n[environment]\nx = 1\n[environment.healthcheck]\ncommand = \"c\"\nx = 1\n[[steps]]\nname = \"s\"\nx = 1\n"))
			if err != nil || len(report.Unknown) != 5 {
				t.Errorf("%v, unknown %v", err, report.Unknown)
			}
		},
		"row 32 two errors": func(t *testing.T) {
			config(t, "[agent]\ntimeout_sec = \"x\"\n[environment]\ncpus = \"y\"\n", "2 validation errors for TaskConfig", "agent.timeout_sec", "environment.cpus")
		},
		"row 33 min_reward": func(t *testing.T) {
			for text, want := range map[string]float64{"0.5": 0.5, "\"0.25\"": 0.25, "1": 1} {
				equal(t, text, config(t, "[[steps]]\nname = \"a\"\nmin_reward = "+text+"\n").Steps[0].MinReward.Number, want)
			}
			byKey := config(t, "[[steps]]\nname = \"a\"\nmin_reward = {x = 0.5, y = \"1\"}\n").Steps[0].MinReward.ByKey
			equal(t, "table", byKey.Len(), 2)
		},
		"row 34 writing": func(t *testing.T) {
			c := config(t, "")
			equal(t, "empty", string(c.TOML()), "schema_version = \"1.3\"\nartifacts = []\n\n[metadata]\n\n[verifier]\ntimeout_sec = 600.0\n\n[verifier.env]\n\n[agent]\n\n"+
				"[environment]\nnetwork_mode = \"public\"\nbuild_timeout_sec = 600.0\nos = \"linux\"\nmcp_servers = []\n\n[environment.env]\n\n[solution.env]\n")
			full := config(t, "[task]\nname = \"o/n\"\nauthors = [{name = \"A\"}]\n[verifier.environment]\ndocker_image = \"i\"\n"+
				"[[environment.mcp_servers]]\nname = \"m\"\nurl = \"u\"\n[[steps]]\nname = \"s\"\nmin_reward = 0.5\n")
			again := config(t, string(full.TOML()))
			if diff := cmp.Diff(string(value.AppendPydantic(nil, full.JSON(), 2)), string(value.AppendPydantic(nil, again.JSON(), 2))); diff != "" {
				t.Errorf("(-first +again):\n%s", diff)
			}
		},
		"row 35 templates": func(t *testing.T) {
			host := func(name string) (string, bool) {
				return map[string]string{"A": "a"}[name], name == "A" || name == "EMPTY"
			}
			for value, want := range map[string]string{"${A}": "a", "${EMPTY:-d}": "", "${M:-${A}}": "${A}", "pre${A}": "pre${A}", "${M:-}": ""} {
				got, err := harbor.ResolveTemplate(value, host)
				if err != nil || got != want {
					t.Errorf("%s gives %q, %v; want %q", value, got, err, want)
				}
			}
			_, err := harbor.ResolveTemplate("${M}", host)
			assertRaised(t, err, exception.ValueError, "Environment variable 'M' not found in host environment")
		},
		"row 74 implicit artifact": func(t *testing.T) {
			list := harbor.EffectiveArtifacts([]harbor.Artifact{{Source: "/logs/artifacts/"}})
			equal(t, "explicit", len(list), 1)
			list = harbor.EffectiveArtifacts([]harbor.Artifact{{Source: "/x"}}, []harbor.Artifact{{Source: "/y"}})
			equal(t, "implicit", list[0].Source+" "+list[1].Source+" "+list[2].Source, "/logs/artifacts /x /y")
		},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); row(t) })
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func rowAllowedHosts(t *testing.T) {
	hosts := func(list string) string {
		return "[environment]\nnetwork_mode = \"allowlist\"\nallowed_hosts = [" + list + "]\n"
	}
	c := config(t, hosts(`" Example.ORG. ", "*.a.b", "1.2.3.4", "localhost"`))
	equal(t, "normalised", strings.Join(c.Environment.Network.AllowedHosts, " "), "example.org *.a.b 1.2.3.4 localhost")
	for bad, want := range map[string]string{
		`" "`: "must be non-empty hostnames.", `"http://x"`: "must be hostnames, not URLs, ports, or paths.", `"x:1"`: "not URLs, ports, or paths.",
		`"a*"`: "must use a leading '*.' prefix.", `"*"`: "leading '*.' prefix.", `"-a"`: "must be valid hostnames", `"a..b"`: "must be valid hostnames",
	} {
		config(t, hosts(bad), want)
	}
	config(t, "[environment]\nnetwork_mode = \"allowlist\"\n", "allowed_hosts must be non-empty when network_mode='allowlist'.")
	config(t, "[environment]\nallowed_hosts = [\"a\"]\n", "allowed_hosts is only valid when network_mode='allowlist'.")
	config(t, "[environment]\nallowed_hosts = []\n")
	config(t, "[agent]\nallowed_hosts = []\n", "allowed_hosts is only valid when network_mode='allowlist'.")
}

func rowModes(t *testing.T) {
	for _, c := range []struct {
		task, step string
		want       harbor.VerifierMode // of the step
	}{
		{"", "", harbor.Shared},
		{"environment_mode = \"separate\"\n", "", harbor.Separate},
		{"[verifier.environment]\ncpus = 1\n", "", harbor.Separate},
		{"environment_mode = \"separate\"\n", "[steps.verifier]\nenvironment_mode = \"shared\"\n", harbor.Shared},
		{"", "[steps.verifier]\nenvironment_mode = \"separate\"\n", harbor.Separate},
		{"", "[steps.verifier.environment]\ncpus = 1\n", harbor.Separate},
	} {
		cfg := config(t, "[verifier]\n"+c.task+"[[steps]]\nname = \"a\"\n"+c.step)
		equal(t, c.task+c.step, cfg.VerifierMode(&cfg.Steps[0]), c.want)
	}
	const wrong = "[verifier].environment_mode='shared' is incompatible with [verifier.environment]"
	config(t, "[verifier]\nenvironment_mode = \"shared\"\n[verifier.environment]\n", wrong)
	config(t, "[[steps]]\nname = \"a\"\n[steps.verifier]\nenvironment_mode = \"shared\"\n[steps.verifier.environment]\n", wrong, "steps.0.verifier")
}
