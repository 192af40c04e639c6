package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkManyTrials is hello-world with an agent that does nothing, sixteen
// trials at a time: 10, 100 and 1,000 of them. growth is the exponent with
// which the time grows from 10 trials to 1,000; 1 is linear. peak-MB is the
// memory of proctor itself, without its sandboxes.
func BenchmarkManyTrials(b *testing.B) {
	for _, where := range environments() {
		if !strings.HasPrefix(where.name, "host") {
			continue
		}
		b.Run(where.name, func(b *testing.B) {
			flags := where.flags(b)
			p := newPlace(b)
			var took [3]time.Duration
			var peak int64
			sizes := [...]int{10, 100, 1000}
			for b.Loop() {
				for i, n := range sizes {
					started := time.Now()
					peak = max(peak, p.nothing(b, n, flags))
					took[i] += time.Since(started)
				}
			}
			for i, n := range sizes {
				b.ReportMetric(float64(n*b.N)/took[i].Seconds(), fmt.Sprintf("trials/s-of-%d", n))
			}
			b.ReportMetric(math.Log10(took[2].Seconds()/took[0].Seconds())/2, "growth")
			b.ReportMetric(float64(peak)/1e6, "peak-MB")
		})
	}
}

// nothing runs so many trials in which nothing happens, and returns the most
// memory that proctor had, in bytes.
func (p place) nothing(b *testing.B, trials int, flags []string) (peak int64) {
	b.Helper()
	args := append([]string{
		"run", "-p", repositoryPath(b, "examples/tasks/hello-world"), "-a", "nop", "-q",
		"-n", "16", "-k", strconv.Itoa(trials), "--fail-under-coverage", "1",
		"--job-name", time.Now().Format("150405.000000000"),
	}, flags...)
	cmd := p.command(args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for ticks := time.Tick(20 * time.Millisecond); ; {
		select {
		case err := <-ended:
			if err != nil {
				b.Fatalf("%d trials: %v\n%s", trials, err, output.String())
			}
			return peak
		case <-ticks:
			peak = max(peak, peakMemory(cmd.Process.Pid))
		}
	}
}

// peakMemory is the largest resident set that a running process has had, in
// bytes, and 0 for one that has ended.
func peakMemory(pid int) int64 {
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer func() { _ = status.Close() }()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kB, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(text, "kB")), 10, 64)
			return kB << 10
		}
	}
	return 0
}
