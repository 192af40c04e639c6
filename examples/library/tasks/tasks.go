// Package tasks looks at Harbor task directories, and tries one without a job.
package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	harborcube "github.com/proctor-run/proctor/cube/cubes/harbor"
	"github.com/proctor-run/proctor/dataset"
	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/harbor/terminalbench"
	"github.com/proctor-run/proctor/job/taskcheck"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/buildcontext"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
	"github.com/proctor-run/proctor/verify"
)

// Checksum loads a task and identifies its content. What is wrong with the
// configuration is listed with the place of each problem.
func Checksum(dir string) (sum string, problems []string, err error) {
	task, err := harbor.Load(dir, harbor.LoadOptions{})
	var invalid *schema.Errors
	if errors.As(err, &invalid) {
		return "", invalid.Brief(), err
	}
	if err != nil {
		return "", nil, err
	}
	sum, err = harbor.Checksum(task.Dir)
	return sum, nil, err
}

// Files lists what an image of the task is built from.
func Files(dir string) ([]string, error) {
	c, err := buildcontext.Read(dir)
	if err != nil {
		return nil, err
	}
	return c.Names(), nil
}

// Datasets lists the data sets of a registry file.
func Datasets(file []byte) ([]string, error) {
	r, err := dataset.ParseRegistry(file)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range r.Datasets {
		names = append(names, describeSet(d))
	}
	return names, nil
}

func describeSet(d dataset.RegistryEntry) string {
	where := map[bool]int{}
	for _, t := range d.Tasks {
		where[isRemote(t)]++
	}
	return fmt.Sprintf("%s: %d tasks in git, %d on this machine", d.Name, where[true], where[false])
}

func isRemote(t dataset.RegistryTask) bool { return t.GitURL != nil }

// Contents lists the packages and the files that a dataset's manifest pins.
func Contents(file string) (packages []dataset.ManifestTask, files []dataset.ManifestFile, err error) {
	m, err := dataset.ParseManifest(file)
	if err != nil {
		return nil, nil, err
	}
	return m.Tasks, m.Files, nil
}

// Needs says what a task asks of a machine.
func Needs(task *harbor.Task) string {
	return fmt.Sprintf("%s, its tests run in %s", system(task.Config.Environment.OS), place(task.Config.VerifierMode(nil)))
}

func system(os harbor.OS) string {
	if os == harbor.Windows {
		return "Windows, which runs nowhere here"
	}
	return "Linux"
}

func place(mode harbor.VerifierMode) string {
	if mode == harbor.Separate {
		return "a sandbox of their own"
	}
	return "the agent's sandbox"
}

// Convert makes Harbor tasks of Terminal-Bench ones and lists those that it made.
func Convert(ctx context.Context, in, out string) ([]string, error) {
	r, err := terminalbench.Map(ctx, in, out, terminalbench.Options{Atomic: true})
	for _, f := range r.Failed {
		err = errors.Join(err, fmt.Errorf("task %s: %w", f.Task, f.Err))
	}
	return r.Mapped, err
}

// Scalar is one number of a verifier's rewards, as trainers want it.
func Scalar(r *reward.Rewards) (float64, error) { return harborcube.ScalarReward(r) }

// Plan lists the trials by which a task is checked: the solution, repeated, and
// no work.
func Plan(repeats int) []taskcheck.Role { return taskcheck.Reference(repeats) }

// Try starts a task's environment, runs one command as its agent would and has
// the result verified. The error of a task that gives no rewards is the
// verifier's.
func Try(ctx context.Context, backend sandbox.Backend, dir, command string) (text string, err error) {
	task, err := harbor.Load(dir, harbor.LoadOptions{})
	if err != nil {
		return "", err
	}
	logs, err := os.MkdirTemp("", "try")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(logs)) }()
	if err := environment.MakeLogDirs(logs); err != nil {
		return "", err
	}
	owner, err := procid.Self()
	if err != nil {
		return "", err
	}
	env := environment.New(environment.Config{
		Backend: backend, Task: task, Logs: logs, OutputLimit: 1 << 20, Now: time.Now,
		Spec: sandbox.Spec{
			Name: "try", Labels: sandbox.Labels{Owner: owner},
			Image:  sandbox.Image{Build: &sandbox.Build{ContextDir: dir + "/environment"}},
			Mounts: environment.LogMounts(backend.Capabilities(), logs),
		},
	})
	defer func() { err = errors.Join(err, env.Close(context.WithoutCancel(ctx))) }()
	for _, step := range []func(context.Context) error{env.Start, env.WaitHealthy, env.Equip} {
		if err := step(ctx); err != nil {
			return "", err
		}
	}
	if _, err := env.Exec(ctx, sandbox.Command{Shell: command}); err != nil {
		return "", fmt.Errorf("running the command: %w", err)
	}
	result, err := env.Verify(ctx, nil)
	if err != nil {
		return "", err
	}
	return describe(result), nil
}

func describe(r verify.Result) string {
	return fmt.Sprintf("%s, the tests exited with %d", value.Repr(r.Rewards.Object()), r.ExitCode)
}

// Variables lists what a task takes from the environment of the machine that
// runs it.
func Variables(task *harbor.Task) []harbor.Template {
	var list []harbor.Template
	for _, text := range task.Config.Environment.Env.All() {
		if t, ok := harbor.ParseTemplate(text); ok {
			list = append(list, t)
		}
	}
	return list
}
