package view

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/jobtest"
)

// manyTrials makes a job of a directory with so many trials, copies of one of Harbor's.
func manyTrials(b testing.TB, dir string, trials int) {
	b.Helper()
	src := jobtest.Fixture("mixed-oracle")
	for _, name := range []string{"config.json", "result.json"} {
		jobtest.Write(b, filepath.Join(dir, name), []byte(jobtest.Read(b, filepath.Join(src, name))))
	}
	one := jobtest.Read(b, jobtest.Glob(b, filepath.Join(src, "third__*", "result.json"))[0])
	for i := range trials {
		name := fmt.Sprintf("task-%d__%07d", i/4, i)
		text := strings.NewReplacer(`"task_name": "third"`, fmt.Sprintf(`"task_name": "task-%d"`, i/4)).Replace(one)
		jobtest.Write(b, filepath.Join(dir, name, "result.json"), []byte(text))
	}
}

// BenchmarkPages times pages beside a server of files that sends the same bytes: the list
// of 1,000 jobs with 100 trials each, and a job of 10,000 trials; at first and when it has
// been read before.
func BenchmarkPages(b *testing.B) {
	many, large := filepath.Join(b.TempDir(), "many"), filepath.Join(b.TempDir(), "large")
	for i := range 1000 {
		manyTrials(b, filepath.Join(many, fmt.Sprintf("job-%04d", i)), 100)
	}
	manyTrials(b, filepath.Join(large, "job"), 10_000)
	timePage(b, "1000 jobs", many, "/")
	timePage(b, "10000 trials", large, "/jobs/0/job")
}

// BenchmarkLongTrajectory times the first page of a trajectory of 52 MB like that.
func BenchmarkLongTrajectory(b *testing.B) {
	file := filepath.Join(b.TempDir(), "trajectory.json")
	longOne(b, file, 800)
	timePage(b, "52 MB", file, "/trajectories/0/trajectory")
}

// timePage times a page over a directory or a file.
func timePage(b *testing.B, name, dir, path string) {
	b.Helper()
	at := func() *httptest.Server { return serve(b, Options{Dirs: []string{dir}}) }
	server := at()
	text := fetch(b, server.URL+path)
	file := filepath.Join(b.TempDir(), "page.html")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		b.Fatal(err)
	}
	files := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(file))))
	b.Cleanup(files.Close)
	b.Run(name+"/first", func(b *testing.B) {
		var took time.Duration
		for range b.N {
			b.StopTimer()
			server := at()
			b.StartTimer()
			begin := time.Now()
			fetch(b, server.URL+path)
			took += time.Since(begin)
		}
		beside(b, took, files.URL+"/page.html")
	})
	b.Run(name+"/again", func(b *testing.B) {
		begin := time.Now()
		for range b.N {
			fetch(b, server.URL+path)
		}
		beside(b, time.Since(begin), files.URL+"/page.html")
	})
}

// beside reports how many times as long something took as the file does.
func beside(b *testing.B, took time.Duration, file string) {
	b.Helper()
	b.StopTimer()
	begin := time.Now()
	for range b.N {
		fetch(b, file)
	}
	b.ReportMetric(float64(took)/float64(time.Since(begin)), "×file")
}

func fetch(b *testing.B, address string) []byte {
	b.Helper()
	res, err := http.Get(address)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		b.Fatalf("%s: %s, %v", address, res.Status, err)
	}
	return data
}
