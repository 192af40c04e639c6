package main

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkVersion is the start of the program and nothing more.
func BenchmarkVersion(b *testing.B) {
	p := newPlace(b)
	var took []time.Duration
	for b.Loop() {
		started := time.Now()
		if done := p.run(b, "version"); done.code != exitOK {
			b.Fatalf("exit code %d: %s", done.code, done.stderr)
		}
		took = append(took, time.Since(started))
	}
	reportMedian(b, took)
}

// reportMedian reports the median beside the mean, which one slow run changes.
func reportMedian(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/float64(time.Millisecond), "p50-ms")
}

// BenchmarkHelloWorld is the hello-world example with its own solution, from
// the start of the program to its end. The trial itself, as its result tells
// it, is trial-p50-ms.
func BenchmarkHelloWorld(b *testing.B) {
	for _, where := range environments() {
		b.Run(where.name, func(b *testing.B) {
			flags := where.flags(b)
			p := newPlace(b)
			args := append([]string{"run", "-p", repositoryPath(b, "examples/tasks/hello-world"), "-a", "oracle", "-q", "--fail-under", "1"}, flags...)
			run := func(name string) {
				if done := p.run(b, append(args, "--job-name", name)...); done.code != exitOK {
					b.Fatalf("exit code %d: %s", done.code, done.stderr)
				}
			}
			run("warm") // images are pulled, built and unpacked
			var took, trials []time.Duration
			for b.Loop() {
				name := time.Now().Format("150405.000000000")
				started := time.Now()
				run(name)
				took = append(took, time.Since(started))
				trials = append(trials, trialTime(b, p, name))
			}
			slices.Sort(trials)
			b.ReportMetric(float64(trials[len(trials)/2])/float64(time.Millisecond), "trial-p50-ms")
			reportMedian(b, took)
		})
	}
}

// trialTime is how long the only trial of a job took.
func trialTime(b *testing.B, p place, name string) time.Duration {
	b.Helper()
	_, result := onlyTrial(b, p.dir+"/jobs/"+name)
	return result.FinishedAt.In(time.UTC).Sub(result.StartedAt.In(time.UTC))
}

// harborSeconds is what Harbor 0.13.1 takes for the job of
// BenchmarkTwentyTrials on two processors.
const harborSeconds = 80

// BenchmarkTwentyTrials is hello-world twenty times, four at a time, on a Docker
// Engine.
func BenchmarkTwentyTrials(b *testing.B) {
	where := environments()[slices.IndexFunc(environments(), func(e environment) bool { return e.name == "docker" })]
	flags := where.flags(b)
	p := newPlace(b)
	args := append([]string{"run", "-p", repositoryPath(b, "examples/tasks/hello-world"), "-a", "oracle", "-q", "--fail-under", "1"}, flags...)
	run := func(more ...string) {
		if done := p.run(b, append(args, more...)...); done.code != exitOK {
			b.Fatalf("exit code %d: %s", done.code, done.stderr)
		}
	}
	run("--job-name", "warm")
	var took []time.Duration
	for b.Loop() {
		started := time.Now()
		run("-k", "20", "-n", "4", "--job-name", started.Format("150405.000000000"))
		took = append(took, time.Since(started))
	}
	slices.Sort(took)
	b.ReportMetric(harborSeconds/took[len(took)/2].Seconds(), "times-Harbor")
	reportMedian(b, took)
}
