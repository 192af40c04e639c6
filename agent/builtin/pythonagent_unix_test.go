//go:build unix

package builtin

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/proctor-run/proctor/internal/need"
)

// shim is a run of pythonAgent by this machine's Python.
type shim struct {
	code    int
	output  string
	context map[string]any
}

// prepareShim writes down an agent and what it is told, and returns the command.
func prepareShim(t *testing.T, code, instruction string) (cmd *exec.Cmd, contextFile string) {
	t.Helper()
	interpreter := need.Program(t, "python3")
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	options, err := json.Marshal(map[string]any{
		"import": "agent:Agent", "dir": in("code"), "instruction": in("instruction"), "context": in("context"), "model": "p/m", "env": []string{"MINE"},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = os.Mkdir(in("code"), 0o755)
	for name, text := range map[string]string{"shim.py": pythonAgent, "code/agent.py": code, "instruction": instruction, "options": string(options), "context": ""} {
		err = errors.Join(err, os.WriteFile(in(name), []byte(text), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), interpreter, "-u", in("shim.py"), in("options"))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "MINE=x", "LC_ALL=C.UTF-8")
	return cmd, in("context")
}

func finishShim(t *testing.T, cmd *exec.Cmd, contextFile string, output *bytes.Buffer) shim {
	t.Helper()
	err := cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	s := shim{code: cmd.ProcessState.ExitCode(), output: output.String()}
	data, err := os.ReadFile(contextFile)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &s.context); err != nil {
			t.Errorf("the context is %q: %v", data, err)
		}
	}
	return s
}

func runShim(t *testing.T, code, instruction string) shim {
	t.Helper()
	cmd, contextFile := prepareShim(t, code, instruction)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return finishShim(t, cmd, contextFile, &output)
}

// TestPythonAgentFailures: what gives no agent, and what an agent raises, have exit
// codes of their own (outcome mapping, section 8.3).
func TestPythonAgentFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code string
		want int
		part string
	}{
		"syntax":                {"class Agent(", 96, "SyntaxError"},
		"import":                {"import nowhere_at_all", 96, "No module named 'nowhere_at_all'"},
		"exits when imported":   {"raise SystemExit(0)", 96, "agent:Agent gives no agent: SystemExit"},
		"no class":              {"Other = 1", 96, "module 'agent' has no class 'Agent'"},
		"a function":            {"def Agent(): pass", 96, "'agent:Agent' is not a class but a function"},
		"no method":             {"class Agent: pass", 96, "has no method run"},
		"constructor":           {"class Agent:\n  def __init__(self): raise ValueError('mine')\n  def run(self, *a): pass", 96, "gives no agent: ValueError: mine"},
		"wants more":            {"class Agent:\n  def __init__(self, api): pass\n  def run(self, *a): pass", 96, "'api'"},
		"absent part of Harbor": {"import harbor.agents.installed.base", 96, "harbor.agents.installed"},
		"set-up":                {"class Agent:\n  def setup(self, e): raise KeyError('mine')\n  def run(self, *a): pass", 1, "KeyError: 'mine'"},
		"run":                   {"class Agent:\n  async def run(self, *a): raise KeyError('mine')", 1, "KeyError: 'mine'"},
		"exits":                 {"class Agent:\n  async def run(self, *a): raise SystemExit(0)", 1, "SystemExit"},
		"plain":                 {"class Agent:\n  def run(self, *a): print('done')", 0, "done"},
		"set up first":          {"class Agent:\n  async def setup(self, e): self.x = 'seen'\n  def run(self, *a): print(self.x)", 0, "seen"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := runShim(t, c.code, "")
			if s.code != c.want || !strings.Contains(s.output, c.part) {
				t.Errorf("exit %d, want %d and %q:\n%s", s.code, c.want, c.part, s.output)
			}
		})
	}
}

// TestPythonAgentOfHarbor: an agent that is written for Harbor runs where Harbor is
// not installed, and what it reports is written down.
func TestPythonAgentOfHarbor(t *testing.T) {
	t.Parallel()
	s := runShim(t, `
import pathlib
from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.models.agent.context import AgentContext

class Agent(BaseAgent):
    def __init__(self, logs_dir, model_name=None, *args, **kwargs):
        super().__init__(logs_dir, model_name, *args, **kwargs)
        assert isinstance(self.logs_dir, pathlib.Path)
        (self.logs_dir / "mine.txt").write_text("log")
        assert self.model_name == "p/m", self.model_name
        assert self.extra_env == {"MINE": "x"}, self.extra_env
        self.logger.info("made")

    @staticmethod
    def name() -> str:
        return "mine"

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        assert instruction == "do\r\nÄ", repr(instruction)
        assert context.env == {"MINE": "x"} and context.is_empty()
        result = await environment.exec("echo $MINE")
        assert isinstance(result, ExecResult) and result.stdout == "x\n", result
        context.n_input_tokens, context.cost_usd = 3, 0.5
        context.metadata = {"path": self.logs_dir}
`, "do\r\nÄ")
	if s.code != 0 || !strings.Contains(s.output, "INFO agent: made") {
		t.Fatalf("exit %d:\n%s", s.code, s.output)
	}
	if s.context["n_input_tokens"] != 3.0 || s.context["cost_usd"] != 0.5 || s.context["n_output_tokens"] != nil {
		t.Errorf("reported %v", s.context)
	}
	if m, _ := s.context["metadata"].(map[string]any); m == nil || !strings.Contains(m["path"].(string), "Path") {
		t.Errorf("metadata %v", s.context["metadata"])
	}
}

// TestPythonAgentKeepsItsOwnHarbor: a package of that name counts where there is one.
func TestPythonAgentKeepsItsOwnHarbor(t *testing.T) {
	t.Parallel()
	cmd, contextFile := prepareShim(t, "from harbor import mine\nclass Agent:\n  def run(self, *a): print(mine)", "")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := errors.Join(os.WriteFile(filepath.Join(cmd.Dir, "code", "harbor.py"), []byte("mine = 'theirs'"), 0o600), cmd.Start()); err != nil {
		t.Fatal(err)
	}
	if s := finishShim(t, cmd, contextFile, &output); s.code != 0 || s.output != "theirs\n" {
		t.Errorf("exit %d:\n%s", s.code, s.output)
	}
}

// TestPythonAgentCommands is the contract of commands (outcome mapping, section 8.4).
func TestPythonAgentCommands(t *testing.T) {
	t.Parallel()
	s := runShim(t, `
import asyncio, os, tempfile

async def raises(kind, part, awaitable):
    try:
        await awaitable
    except kind as e:
        assert type(e) is kind and part in str(e), repr(e)
    else:
        raise AssertionError("no " + kind.__name__)

class Agent:
    async def run(self, instruction, e, context):
        r = await e.exec("echo out; echo err >&2; exit 3")
        assert (r.stdout, r.stderr, r.return_code) == ("out\nerr\n", None, 3), r
        r = await e.exec("true")
        assert (r.stdout, r.stderr, r.return_code) == (None, None, 0), r
        r = await e.exec("kill -9 $$")
        assert r.return_code != 0 and type(r.return_code) is int, r
        r = await e.exec("printf 'a\\377b'")
        assert r.stdout == "a\ufffdb", r
        r = await e.exec("pwd; echo $X$MINE", cwd="/", env={"X": "y"})
        assert r.stdout == "/\nyx\n", r
        assert (await e.exec("pwd")).stdout == os.getcwd() + "\n"
        assert "X" not in os.environ
        r = await e.exec("[[ -n $BASH_VERSION ]] && cat")
        assert (r.stdout, r.return_code) == (None, 0), r
        # A command has ended when it has, whatever it leaves behind.
        r = await e.exec("sleep 1000 & echo $!")
        os.kill(int(r.stdout), 9)
        await raises(TimeoutError, "Command timed out after 0.2 seconds", e.exec("sleep 1000 & sleep 1000", timeout_sec=0.2))
        with tempfile.TemporaryDirectory() as d:
            # SIGTERM comes first, and a group that ignores it is killed.
            await raises(TimeoutError, "Command timed out after 1 seconds",
                         e.exec("trap 'echo > %s/term; exit' TERM; while :; do sleep 0.1; done" % d, timeout_sec=1))
            assert os.path.exists(d + "/term")
            with open(d + "/a", "w") as f:
                f.write("text")
            await e.upload_file(d + "/a", d + "/new/b")
            await e.download_file(d + "/new/b", d + "/c")
            await e.upload_dir(d + "/new", d + "/copy")
            await e.download_dir(d + "/new", d + "/copy")
            assert open(d + "/c").read() == open(d + "/copy/b").read() == "text"
            assert await e.is_file(d + "/c") and await e.is_dir(d + "/copy") and not await e.is_dir(d + "/c")
        # A command that is given up is killed.
        task = asyncio.ensure_future(e.exec("echo $$ > pid; exec sleep 1000"))
        while not (os.path.exists("pid") and open("pid").read()):
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        pid = int(open("pid").read())
        while True:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                break
            await asyncio.sleep(0.01)
        assert (await e.exec("id -u", user=os.geteuid())).stdout == "%d\n" % os.geteuid()
        await raises(PermissionError, "there is no such user or group", e.exec("true", user="nobody-of-this-name"))
        if os.geteuid() == 0:
            r = await e.exec("id -u; id -g; id -G; echo $HOME", cwd="/", user="1234:5678")
            assert r.stdout.startswith("1234\n5678\n5678\n"), r
            r = await e.exec("id -un; echo $HOME", cwd="/", user="nobody")
            assert r.stdout == "nobody\n/nonexistent\n", r
        else:
            await raises(PermissionError, "and is not root", e.exec("true", user="root"))
        print("all of it")
`, "")
	if s.code != 0 || !strings.HasSuffix(s.output, "all of it\n") {
		t.Errorf("exit %d:\n%s", s.code, s.output)
	}
}

// TestPythonAgentReportsWhatItCan: a context that is no JSON costs the metadata alone.
func TestPythonAgentReportsWhatItCan(t *testing.T) {
	t.Parallel()
	s := runShim(t, `
class Agent:
    def run(self, instruction, environment, context):
        context.n_output_tokens = 5
        context.metadata = {}
        context.metadata["self"] = context.metadata
        raise ValueError("mine")
`, "")
	if s.code != 1 || s.context["n_output_tokens"] != 5.0 || s.context["metadata"] != nil || !strings.Contains(s.output, "ValueError: mine") {
		t.Errorf("exit %d, context %v:\n%s", s.code, s.context, s.output)
	}
}

// TestPythonAgentReportsWhenItIsEnded: at the deadline the process gets SIGTERM.
func TestPythonAgentReportsWhenItIsEnded(t *testing.T) {
	t.Parallel()
	cmd, contextFile := prepareShim(t, `
class Agent:
    async def run(self, instruction, environment, context):
        context.n_output_tokens = 5
        print("working")
        await __import__("asyncio").sleep(1000)
`, "")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, len("working\n"))
	if _, err := pipe.Read(line); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if s := finishShim(t, cmd, contextFile, new(bytes.Buffer)); s.code != 128+int(syscall.SIGTERM) || s.context["n_output_tokens"] != 5.0 {
		t.Errorf("exit %d, context %v", s.code, s.context)
	}
}
