package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/bench"
	"github.com/proctor-run/proctor/sandbox/oci"
)

// benchSubjects finds what works on this machine.
type benchSubjects struct {
	env      *Env
	flags    *benchFlags
	dir      string // for tasks and jobs
	owner    procid.ID
	subjects []bench.Subject
	closers  []func() error
	runtimes map[string][]oci.RuntimeStatus // by the entry that has them
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

// wants reports whether a backend is to be measured. Without -e, one that needs an
// image is not.
func (s *benchSubjects) wants(e sandboxes.Entry) bool {
	if len(s.flags.environments) > 0 {
		return slices.Contains(s.flags.environments, e.Name)
	}
	return !e.NeedsImage
}

func (s *benchSubjects) find(ctx context.Context) (err error) {
	for _, name := range s.flags.environments {
		if known := backends().Names(); !slices.Contains(known, name) {
			last := len(known) - 1
			return usageErrorf("-e %s: want %s or %s", name, strings.Join(known[:last], ", "), known[last])
		}
	}
	wanted := slices.DeleteFunc(backends().Entries(), func(e sandboxes.Entry) bool { return !s.wants(e) })
	for _, e := range wanted {
		if e.NeedsImage && s.flags.image == "" {
			return usageErrorf("-e %s needs --image", e.Name)
		}
	}
	if s.owner, err = procid.Self(); err != nil {
		return err
	}
	for _, e := range wanted {
		if err := s.findEntry(ctx, e); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(s.subjects) == 0 {
		return withHint(usageErrorf("nothing that is asked for works on this machine"), "'proctor doctor' says why")
	}
	return nil
}

// findEntry adds a backend, with each runtime that it has and that is wanted.
func (s *benchSubjects) findEntry(ctx context.Context, e sandboxes.Entry) error {
	if !backends().HasRuntimes(e) {
		if len(s.flags.runtimes) > 0 {
			return nil
		}
		if err := s.add(ctx, e, ""); err != nil {
			s.leave(e.Name, err)
		}
		return nil
	}
	runtimes, err := s.runtimesOf(ctx, e)
	if err != nil {
		return err
	}
	for _, r := range runtimes {
		if len(s.flags.runtimes) > 0 && !slices.Contains(s.flags.runtimes, r.Name) {
			continue
		}
		if !r.Available {
			s.leave(e.Name+" "+r.Name, errors.New(r.Reason))
		} else if err := s.add(ctx, e, r.Name); err != nil {
			s.leave(e.Name+" "+r.Name, err)
		}
	}
	return nil
}

// runtimesOf asks once for what several entries share.
func (s *benchSubjects) runtimesOf(ctx context.Context, e sandboxes.Entry) ([]oci.RuntimeStatus, error) {
	key := e.Name
	if e.Runtimes == nil {
		key = e.With
	}
	if known, ok := s.runtimes[key]; ok {
		return known, nil
	}
	found, err := sandboxes.RuntimesOf(ctx, key, backendOptions{}.in(s.env))
	if err != nil {
		return nil, err
	}
	if s.runtimes == nil {
		s.runtimes = map[string][]oci.RuntimeStatus{}
	}
	s.runtimes[key] = found
	return found, nil
}

// stocked is a backend that has images of its own, and withBaseline one that has
// something plainer to be compared with.
type (
	stocked interface {
		LocalImages(ctx context.Context) ([]string, error)
	}
	withBaseline interface{ Baseline() sandbox.Backend }
)

// add adds a backend with a runtime, or without, and its baseline.
func (s *benchSubjects) add(ctx context.Context, e sandboxes.Entry, runtime string) error {
	o := backendOptions{}
	o.Runtime, o.Mask, o.Hardened, o.AllowRemoteEngine = runtime, []string{s.dir}, s.flags.hardened, s.flags.allowRemote
	b, closeBackend, err := sandboxes.New(ctx, e.Name, o.in(s.env))
	if err != nil {
		return err
	}
	s.closers = append(s.closers, closeBackend)
	if s.flags.hardened && !b.Capabilities().Hardened {
		return fmt.Errorf("hardening its sandboxes: %w", sandbox.ErrUnsupported)
	}
	if runtime == "" { // the others were checked with their runtime
		if err := b.Check(ctx); err != nil {
			return err
		}
	}
	base := b
	if c, ok := b.(withBaseline); ok {
		base = c.Baseline()
	}
	img, restsOn := sandbox.Image{}, "this machine's own root"
	if !b.Capabilities().OwnRoot {
		if img.Ref, err = s.imageFor(ctx, b, base); err != nil {
			return err
		}
		restsOn = "image " + img.Ref
	}
	subject := s.subject(e.Name, runtime, restsOn, b, img)
	if base != b {
		raw := subject
		raw.Name, raw.RestsOn, raw.Backend, raw.Trials = "engine", restsOn+", by the Engine API alone", base, nil
		s.subjects = append(s.subjects, raw)
	}
	s.subjects = append(s.subjects, subject)
	return nil
}

// imageFor is the image that was given, or one that the backend has.
func (s *benchSubjects) imageFor(ctx context.Context, b, base sandbox.Backend) (string, error) {
	stock, ok := b.(stocked)
	if !ok {
		return s.flags.image, nil
	}
	candidates := []string{s.flags.image}
	if s.flags.image == "" {
		var err error
		if candidates, err = stock.LocalImages(ctx); err != nil {
			return "", err
		}
	}
	return s.firstThatWorks(ctx, base, candidates)
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
	done, err := job.Run(ctx, cfg, agents(s.env), b)
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
		"solution/solve.sh":      "#!/bin/bash\necho 'Hello, world!' > /tmp/hello.txt\n",
		"tests/test.sh":          "#!/bin/bash\nif [ \"$(cat /tmp/hello.txt)\" = 'Hello, world!' ]; then\n  echo 1 > /logs/verifier/reward.txt\nelse\n  echo 0 > /logs/verifier/reward.txt\nfi\n",
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
