package shell_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/cube/shell"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/value"
)

// container answers commands from a list and keeps what it was asked.
type container struct {
	results  cube.List
	requests cube.List
}

func (*container) ID() string                 { return "c" }
func (*container) Stop(context.Context) error { return nil }

func (c *container) Exec(_ context.Context, req cube.ExecRequest) (cube.ExecResult, error) {
	request := cube.Pairs("command", req.Command, "timeout", nil, "workdir", req.Workdir, "env", nil)
	if req.Timeout > 0 {
		request.Set("timeout", value.NewInt(int64(req.Timeout.Seconds())))
	}
	if req.Env.Len() > 0 {
		env := cube.Pairs()
		for k, v := range req.Env.All() {
			env.Set(k, cube.Str(v))
		}
		request.Set("env", env)
	}
	c.requests = append(c.requests, request)
	if len(c.results) == 0 {
		return cube.ExecResult{}, errors.New("no more results")
	}
	r := c.results[0].(*cube.Object)
	c.results = c.results[1:]
	return cube.ExecResult{Stdout: str(r, "stdout"), Stderr: str(r, "stderr"), ExitCode: num(r, "exit_code")}, nil
}

func str(o *cube.Object, key string) string {
	v, _ := o.Get(key)
	s, _ := v.(cube.Str)
	return string(s)
}

func num(o *cube.Object, key string) int {
	v, _ := o.Get(key)
	n, _ := v.(cube.Int)
	i, _ := n.Int64()
	return int(i)
}

func compact(v cube.Value) string { return string(value.AppendPydantic(nil, v, 0)) }

func TestVectors(t *testing.T) {
	t.Parallel()
	reg := cube.NewRegistry(cube.Options{})
	if err := shell.Register(reg); err != nil {
		t.Fatal(err)
	}
	v, err := value.Decode(vectors.File(t, "cube/bash_tool.json"))
	if err != nil {
		t.Fatal(err)
	}
	list, _ := v.(*cube.Object).Get("cases")
	for _, item := range list.(cube.List) {
		c := item.(*cube.Object)
		t.Run(str(c, "id"), func(t *testing.T) {
			t.Parallel()
			switch str(c, "op") {
			case "":
				runAction(t, reg, c)
			case "parse_line_range": // TestLineRangeVectors runs it
			case "local_container_exec_command_line":
				req := cube.ExecRequest{Command: str(c, "command")}
				req.Timeout = seconds(c, "timeout")
				if got := infra.ShellLine(req); got != str(c, "exec_string") {
					t.Errorf("got %q, want %q", got, str(c, "exec_string"))
				}
			default:
				t.Skipf("unknown op %q", str(c, "op"))
			}
		})
	}
	t.Logf("bash_tool.json: %d cases", len(list.(cube.List)))
}

func runAction(t *testing.T, reg *cube.Registry, c *cube.Object) {
	conf, _ := c.Get("config")
	cfg, err := cube.FromValue[*shell.BashToolConfig](reg, conf)
	if err != nil {
		t.Fatal(err)
	}
	results, _ := c.Get("exec_results")
	box := &container{results: results.(cube.List)}
	tool, err := cfg.Make(t.Context(), box)
	if err != nil {
		t.Fatal(err)
	}
	call, _ := c.Get("action")
	action, err := cube.FromValue[*cube.Action](reg, call)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tool.Execute(t.Context(), *action)
	if err != nil || r.Err != nil {
		t.Fatalf("execute: %v, %+v", err, r.Err)
	}
	got, err := cube.Dump(r.Obs)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := c.Get("result")
	if diff := cmp.Diff(compact(want), compact(got)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	calls, _ := c.Get("container_calls")
	if diff := cmp.Diff(compact(calls), compact(box.requests)); diff != "" {
		t.Errorf("container calls (-want +got):\n%s", diff)
	}
	var names cube.List
	for _, a := range tool.Actions() {
		names = append(names, cube.Str(a.Name))
	}
	wantNames, _ := c.Get("action_names")
	if diff := cmp.Diff(compact(wantNames), compact(names)); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

func seconds(c *cube.Object, key string) time.Duration {
	return time.Duration(num(c, key)) * time.Second
}

func TestToolsNeedAContainer(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]cube.ToolConfig{
		"BashTool requires a container":              shell.NewBashToolConfig(),
		"ContainerTerminalTool requires a container": shell.NewTerminalToolConfig(),
	} {
		if _, err := cfg.Make(t.Context(), nil); err == nil || err.Error() != want || cube.ErrorType(err) != "ValueError" {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestTimeoutIsCapped(t *testing.T) {
	t.Parallel()
	cfg := shell.NewTerminalToolConfig()
	cfg.MaxTimeout = new(30)
	box := &container{results: cube.List{cube.Pairs("exit_code", 124)}}
	tool, err := cfg.Make(t.Context(), box)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tool.Execute(t.Context(), cube.NewAction("bash", "command", "sleep 100", "timeout", 90))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Obs.Contents[0].(*cube.TextContent).Data; got != "[timed out after 30s]" {
		t.Errorf("got %q", got)
	}
	if got := num(box.requests[0].(*cube.Object), "timeout"); got != 30 {
		t.Errorf("timeout %d, want 30", got)
	}
}

// local runs commands here, in a shell without a container.
type local struct{ dir string }

func (*local) ID() string                 { return "local" }
func (*local) Stop(context.Context) error { return nil }

func (l *local) Exec(ctx context.Context, req infra.ExecRequest) (infra.ExecResult, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", req.Command)
	cmd.Dir = l.dir
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		err = nil
	}
	if err != nil {
		return infra.ExecResult{}, err
	}
	return infra.ExecResult{Stdout: string(out), ExitCode: cmd.ProcessState.ExitCode()}, nil
}

func TestWriteOfLargeFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := shell.NewBashToolConfig()
	cfg.EnableFileActions = true
	tool, err := cfg.Make(t.Context(), &local{dir})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"plain":  strings.Repeat("0123456789abcdef\n", 40_000),
		"quotes": strings.Repeat("'", 200_000),
		"wide":   strings.Repeat("ä€😀%s\\n", 40_000),
		"empty":  "",
		"small":  "it's %d\n",
	} {
		for range 2 { // the second replaces what the first wrote
			r, err := tool.Execute(t.Context(), cube.NewAction("write_file", "path", "sub/"+name, "content", content))
			if err != nil || r.Err != nil {
				t.Fatal(name, err, r.Err)
			}
			want := fmt.Sprintf("Wrote %d bytes to sub/%s", utf8.RuneCountInString(content), name)
			if got := r.Obs.Contents[0].(*cube.TextContent).Data; got != want {
				t.Fatalf("got %.200q, want %q", got, want)
			}
		}
		got, err := os.ReadFile(filepath.Join(dir, "sub", name))
		if err != nil || string(got) != content {
			t.Errorf("%s: %d bytes were written of %d, %v", name, len(got), len(content), err)
		}
	}
}

func runBash(t *testing.T, cfg cube.ToolConfig, box *container, args ...any) string {
	t.Helper()
	tool, err := cfg.Make(t.Context(), box)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tool.Execute(t.Context(), cube.NewAction("bash", append([]any{"command", "x"}, args...)...))
	if err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	return r.Obs.Contents[0].(*cube.TextContent).Data
}

func TestEnvelopeSurvivesTruncation(t *testing.T) {
	t.Parallel()
	cfg := shell.NewBashToolConfig()
	cfg.OutputFormat, cfg.MaxOutputBytes = "returncode_envelope", 10
	for code, want := range map[int]string{
		3:   "<returncode>3</returncode>\n<output>\nab\n[... 16 bytes elided ...]\nstuvwxyz\n</output>",
		124: "<returncode>124</returncode>\n<output>\nab\n[... 39 bytes elided ...]\ner 120s]\n</output>",
	} {
		box := &container{results: cube.List{cube.Pairs("stdout", "abcdefghijklmnopqrstuvwxyz", "exit_code", code)}}
		if diff := cmp.Diff(want, runBash(t, cfg, box)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestNoTimeoutDoesNotGetAroundTheCap(t *testing.T) {
	t.Parallel()
	capped := shell.NewTerminalToolConfig()
	capped.MaxTimeout = new(30)
	for _, c := range []struct {
		cfg           cube.ToolConfig
		timeout, want int
	}{
		{capped, 0, 30}, {capped, -1, 30}, {capped, 31, 30}, {capped, 7, 7},
		{shell.NewBashToolConfig(), 0, 0}, {shell.NewBashToolConfig(), 1000, 1000},
	} {
		box := &container{results: cube.List{cube.Pairs("exit_code", 0)}}
		runBash(t, c.cfg, box, "timeout", c.timeout)
		if got := num(box.requests[0].(*cube.Object), "timeout"); got != c.want {
			t.Errorf("timeout %d: got %d, want %d", c.timeout, got, c.want)
		}
	}
	box := &container{}
	if got := runBash(t, shell.NewBashToolConfig(), box, "timeout", -1); !strings.HasPrefix(got, "Error: timeout") || len(box.requests) > 0 {
		t.Errorf("got %q after %v", got, box.requests)
	}
	capped.MaxTimeout = new(0)
	if err := capped.Validate(); err == nil {
		t.Error("a cap of 0 is accepted")
	}
}
