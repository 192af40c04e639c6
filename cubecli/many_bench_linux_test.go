package cubecli_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// manyTasks is a job of the size of a large benchmark.
const manyTasks = 10_001

// BenchmarkMany runs an author's program with tasks that do nothing, each sample
// in a process and a directory of its own: a whole job, and a job of which 1000
// trials are missing. What one run of the program takes:
//
//   - wall-s, cpu-s: its time, and that of the processors for it and the kernel
//   - peak-MB: the largest resident set
//   - files, MB: what its directory holds afterwards
//
// One sample is enough: go test ./cubecli -run '^$' -bench Many -benchtime 1x
func BenchmarkMany(b *testing.B) {
	program := filepath.Join(b.TempDir(), "many")
	if out, err := exec.Command("go", "build", "-o", program, "./testdata/many").CombinedOutput(); err != nil {
		b.Fatalf("building: %v\n%s", err, out)
	}
	dir := filepath.Join(b.TempDir(), "jobs")
	whole := []string{"run", "many-cube", "-q", "-a", "nop", "-n", "8", "-o", dir, "--job-name", "many"}
	b.Run("run", func(b *testing.B) {
		var u usage
		for b.Loop() {
			b.StopTimer()
			if err := os.RemoveAll(dir); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			u.add(b, program, whole...)
		}
		u.report(b, dir)
	})
	b.Run("resume", func(b *testing.B) {
		var u usage
		for b.Loop() {
			b.StopTimer()
			removeTrials(b, filepath.Join(dir, "many"), 1000)
			b.StartTimer()
			u.add(b, program, "resume", filepath.Join(dir, "many"))
		}
		u.report(b, dir)
	})
}

// removeTrials deletes the directories of so many trials, evenly among all.
func removeTrials(b *testing.B, dir string, n int) {
	b.Helper()
	trials, err := filepath.Glob(filepath.Join(dir, "task-*"))
	if err != nil || len(trials) != manyTasks {
		b.Fatalf("%d trials are there, want %d; error %v", len(trials), manyTasks, err)
	}
	for i := range n {
		if err := os.RemoveAll(trials[i*(len(trials)/n)]); err != nil {
			b.Fatal(err)
		}
	}
}

// usage sums what runs of a program took.
type usage struct {
	runs      int
	wall, cpu time.Duration
	peak      int64 // KiB, the largest of any
}

func (u *usage) add(b *testing.B, program string, args ...string) {
	b.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "MANY_TASKS="+strconv.Itoa(manyTasks))
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%.2000s", err, out)
	}
	u.runs++
	u.wall += time.Since(began)
	u.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.peak = max(u.peak, int64(r.Maxrss))
	}
}

func (u *usage) report(b *testing.B, dir string) {
	b.Helper()
	files, size := 0, int64(0)
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			files, size = files+1, size+info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(u.wall.Seconds()/float64(u.runs), "wall-s")
	b.ReportMetric(u.cpu.Seconds()/float64(u.runs), "cpu-s")
	b.ReportMetric(float64(u.peak)/1024, "peak-MB")
	b.ReportMetric(float64(files), "files")
	b.ReportMetric(float64(size)/(1<<20), "MB")
	b.ReportMetric(0, "ns/op") // wall-s says it
}
