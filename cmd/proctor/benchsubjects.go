package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/bench"
	"github.com/proctor-run/proctor/sandbox/docker"
)

// benchSubjects finds what works on this machine.
type benchSubjects struct {
	env      *Env
	flags    *benchFlags
	dir      string // for tasks and jobs
	owner    procid.ID
	subjects []bench.Subject
	closers  []func() error
	jobs     int
}

func (s *benchSubjects) close() {
	for _, c := range s.closers {
		_ = c() // nothing was written
	}
}

func (s *benchSubjects) leave(name string, why error) {
	_, _ = fmt.Fprintf(s.env.Stderr, "proctor: %s is left out: %s\n", name, clean(why.Error()))
}

// wants reports whether an environment is to be measured. Without -e, sandbox is
// only with an image that it can pull.
func (s *benchSubjects) wants(environment string) bool {
	if len(s.flags.environments) > 0 {
		return slices.Contains(s.flags.environments, environment)
	}
	return environment != sandbox.BackendSandbox
}

func (s *benchSubjects) find(ctx context.Context) (err error) {
	for _, e := range s.flags.environments {
		if !slices.Contains(sandboxes.Environments(), e) {
			return usageErrorf("-e %s: want docker, sandbox or host", e)
		}
	}
	if s.wants(sandbox.BackendSandbox) && s.flags.image == "" {
		return usageErrorf("-e sandbox needs --image")
	}
	if s.owner, err = procid.Self(); err != nil {
		return err
	}
	if s.wants(sandbox.BackendDocker) && len(s.flags.runtimes) == 0 {
		if err := s.findDocker(ctx); err != nil {
			s.leave(sandbox.BackendDocker, err)
		}
	}
	if err := s.findRuntimes(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(s.subjects) == 0 {
		return withHint(usageErrorf("nothing that is asked for works on this machine"), "'proctor doctor' says why")
	}
	return nil
}

// findRuntimes adds what runs without an engine.
func (s *benchSubjects) findRuntimes(ctx context.Context) error {
	runtimes, err := sandboxes.Runtimes(ctx, backendOptions{}.in(s.env))
	if err != nil {
		return err
	}
	for _, environment := range []string{sandbox.BackendHost, sandbox.BackendSandbox} {
		for _, r := range runtimes {
			if !s.wants(environment) || len(s.flags.runtimes) > 0 && !slices.Contains(s.flags.runtimes, r.Name) {
				continue
			}
			if !r.Available {
				s.leave(environment+" "+r.Name, errors.New(r.Reason))
			} else if err := s.findOCI(ctx, environment, r.Name); err != nil {
				s.leave(environment+" "+r.Name, err)
			}
		}
	}
	return nil
}

// findDocker adds the engine, as it is and as a backend.
func (s *benchSubjects) findDocker(ctx context.Context) error {
	b, closeBackend, err := sandboxes.New(ctx, sandbox.BackendDocker, backendOptions{}.in(s.env))
	if err != nil {
		return err
	}
	s.closers = append(s.closers, closeBackend)
	if err := b.Check(ctx); err != nil {
		return err
	}
	engine, ok := b.(*docker.Backend)
	if !ok {
		return fmt.Errorf("environment docker is a %T", b)
	}
	candidates := []string{s.flags.image}
	if s.flags.image == "" {
		if candidates, err = engine.LocalImages(ctx); err != nil {
			return err
		}
	}
	base := engine.Baseline()
	ref, err := s.firstThatWorks(ctx, base, candidates)
	if err != nil {
		return err
	}
	subject := s.subject(sandbox.BackendDocker, "", "image "+ref, b, sandbox.Image{Ref: ref})
	raw := subject
	raw.Name, raw.RestsOn, raw.Backend, raw.Trials = "engine", "image "+ref+", by the Engine API alone", base, nil
	s.subjects = append(s.subjects, raw, subject)
	return nil
}

// triedImages bounds the search for an image.
const triedImages = 8

// firstThatWorks is the first image that has what the measurements need.
func (s *benchSubjects) firstThatWorks(ctx context.Context, b sandbox.Backend, refs []string) (string, error) {
	last := errors.New("the engine has no image; pull one with bash, or name it with --image")
	for i, ref := range refs {
		if i == triedImages || ctx.Err() != nil {
			break
		}
		sb, err := b.Create(ctx, sandbox.Spec{Name: "bench", Image: sandbox.Image{Ref: ref}, Labels: sandbox.Labels{Owner: s.owner}})
		if err != nil {
			last = err
			continue
		}
		st, err := sb.Exec(ctx, sandbox.Command{Shell: "test -x /bin/sh && head -c 0 /dev/null"})
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		err = errors.Join(err, sb.Destroy(end))
		cancel()
		switch {
		case err != nil:
			last = err
		case st.Code != 0:
			last = fmt.Errorf("image %s has no bash", ref)
		default:
			return ref, nil
		}
	}
	return "", last
}

// findOCI adds a daemonless environment with a runtime.
func (s *benchSubjects) findOCI(ctx context.Context, environment, runtime string) error {
	o := backendOptions{}
	o.Runtime, o.Mask = runtime, []string{s.dir}
	b, closeBackend, err := sandboxes.New(ctx, environment, o.in(s.env))
	if err != nil {
		return err
	}
	s.closers = append(s.closers, closeBackend)
	restsOn, img := "this machine's own root", sandbox.Image{}
	if environment == sandbox.BackendSandbox {
		restsOn, img.Ref = "image "+s.flags.image, s.flags.image
	}
	s.subjects = append(s.subjects, s.subject(environment, runtime, restsOn, b, img))
	return nil
}

func (s *benchSubjects) subject(environment, runtime, restsOn string, b sandbox.Backend, img sandbox.Image) bench.Subject {
	name := environment
	if runtime != "" {
		name += " " + runtime
	}
	return bench.Subject{
		Name: name, Environment: environment, Runtime: runtime, RestsOn: restsOn, Backend: b,
		Spec: sandbox.Spec{Name: "bench", Image: img, Labels: sandbox.Labels{Job: "bench", Owner: s.owner}},
		Trials: func(ctx context.Context, trials, atATime int) error {
			return s.runTrials(ctx, b, img.Ref, trials, atATime)
		},
	}
}

// runTrials runs the solution of hello-world as a job, and fails when not all of
// them are scored.
func (s *benchSubjects) runTrials(ctx context.Context, b sandbox.Backend, ref string, trials, atATime int) error {
	s.jobs++
	task := filepath.Join(s.dir, "hello-world-"+strconv.Itoa(s.jobs))
	if err := writeHello(task, ref); err != nil {
		return err
	}
	cfg := jobdir.NewConfig(s.env.Now())
	cfg.JobName, cfg.JobsDir = "bench-"+strconv.Itoa(s.jobs), filepath.Join(s.dir, "jobs")
	cfg.NAttempts, cfg.NConcurrentTrials = trials, atATime
	cfg.Tasks = []jobdir.TaskConfig{{Path: &task}}
	done, err := job.Run(ctx, cfg, b)
	if err != nil {
		return err
	}
	if scored := done.Progress.Ended.WithReward; scored != trials || len(done.Progress.Ended.Errors) > 0 {
		return fmt.Errorf("of %d trials %d were scored and %d ended with an exception", trials, scored, len(done.Progress.Ended.Errors))
	}
	return nil
}

// writeHello writes the task hello-world of the examples. A reference stands in
// for its Dockerfile.
func writeHello(dir, ref string) error {
	files := map[string]string{
		"task.toml":              "",
		"instruction.md":         "Create the file hello.txt with the line: Hello, world!\n",
		"environment/Dockerfile": "FROM debian:bookworm-slim\n",
		"solution/solve.sh":      "#!/bin/bash\necho 'Hello, world!' > /hello.txt\n",
		"tests/test.sh":          "#!/bin/bash\nif [ \"$(cat /hello.txt)\" = 'Hello, world!' ]; then\n  echo 1 > /logs/verifier/reward.txt\nelse\n  echo 0 > /logs/verifier/reward.txt\nfi\n",
	}
	if ref != "" {
		files["task.toml"] = fmt.Sprintf("[environment]\ndocker_image = %q\n", ref)
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("writing the task: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing the task: %w", err)
		}
	}
	return nil
}
