package oci

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/internal/network"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
)

// BenchmarkSandbox is a sandbox's whole life with one command, on the host's root.
func BenchmarkSandbox(b *testing.B) {
	for _, name := range runtimeNames() {
		b.Run(name, func(b *testing.B) {
			needRuntime(b, name)
			opts := testOptions(b, name)
			released(b, &opts)
			backend := newBackend(b, opts)
			for b.Loop() {
				s, err := backend.Create(b.Context(), sandbox.Spec{Name: "bench"})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.Exec(b.Context(), sandbox.Command{Argv: []string{"true"}}); err != nil {
					b.Fatal(err)
				}
				if err := s.Destroy(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchFiles is how many files one command of BenchmarkHardened writes.
const benchFiles = 2000

// BenchmarkHardened writes many small files in the working directory of a sandbox,
// and of one that is hardened. The metric "create-ms" is what making it took.
func BenchmarkHardened(b *testing.B) {
	for _, name := range runtimeNames() {
		for _, hardened := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/hardened=%v", name, hardened), func(b *testing.B) {
				needRuntime(b, name)
				opts := testOptions(b, name)
				released(b, &opts)
				opts.Hardened = hardened
				began := time.Now()
				sb := create(b, newBackend(b, opts), sandbox.Spec{Workdir: "/root"})
				created := time.Since(began)
				script := fmt.Sprintf("rm -rf d; mkdir d; for i in $(seq %d); do echo $i >d/$i; done; cat d/* | wc -l", benchFiles)
				for b.Loop() {
					say(b, sb, script)
				}
				b.ReportMetric(float64(created.Milliseconds()), "create-ms")
			})
		}
	}
}

// released has the backend execute its programs as releases have them.
func released(t testing.TB, o *Options) {
	t.Helper()
	dir, id := t.TempDir(), version.Current()
	args := []string{"build", "-buildvcs=false", "-ldflags", "-s -w " + id.LinkerFlags(), "-o", dir + "/", commands + GuestArg0}
	if o.Guest, o.Build = filepath.Join(dir, GuestArg0), id.ID(); o.Runtime == RuntimeGVisor {
		o.GVisor = filepath.Join(dir, "proctor-runsc")
		args = append(args, commands+"proctor-runsc")
	}
	cmd := exec.Command(need.Program(t, "go"), args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// commands is where the module's programs are.
const commands = "github.com/proctor-run/proctor/cmd/"

func BenchmarkEgress(b *testing.B) {
	for _, name := range runtimeNames() {
		b.Run(name, func(b *testing.B) {
			needRuntime(b, name)
			world := &sandboxtest.World{}
			sandboxtest.BenchmarkEgress(b, sandboxtest.Config{World: world, Outside: network.Try(tunPath) == nil, New: func(t testing.TB) sandbox.Backend {
				opts := testOptions(t, name)
				opts.Egress = world.Upstream()
				return newBackend(t, opts)
			}}, "127.0.0.1")
		})
	}
}

// downloadBytes is what one download of BenchmarkDownload carries.
const downloadBytes = 64 << 20

// BenchmarkDownload is a public sandbox's network against the host's own: both take
// downloadBytes from a server on this machine, in turns, with the same program.
// The metric "ratio" is how much of the host's speed the sandbox has, by the
// medians.
func BenchmarkDownload(b *testing.B) {
	for _, name := range runtimeNames() {
		b.Run(name, func(b *testing.B) {
			needRuntime(b, name)
			needTUN(b)
			benchmarkDownload(b, name)
		})
	}
}

func benchmarkDownload(b *testing.B, name string) {
	l := serveBytes(b)
	world := &sandboxtest.World{}
	world.Put("bench.test", l.Addr().String())
	opts := testOptions(b, name)
	opts.Egress = world.Upstream()
	sb, err := newBackend(b, opts).Create(b.Context(), sandbox.Spec{Name: "bench-download"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = sb.Destroy(cleanupContext(b)) })
	const script = "set -o pipefail; cat </dev/tcp/%s/%s | tail -c 1 | wc -c"
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	here := fmt.Sprintf(script, host, port)
	there := fmt.Sprintf(script, world.Address("bench.test"), "80")
	var direct, through []time.Duration
	b.SetBytes(downloadBytes)
	for b.Loop() {
		b.StopTimer()
		direct = append(direct, timed(b, func() error { return exec.Command("bash", "-c", here).Run() }))
		b.StartTimer()
		through = append(through, timed(b, func() error {
			st, err := sb.Exec(b.Context(), sandbox.Command{Shell: there})
			if err == nil && st.Code != 0 {
				err = fmt.Errorf("code %d", st.Code)
			}
			return err
		}))
	}
	b.ReportMetric(float64(median(direct))/float64(median(through)), "ratio")
	b.ReportMetric(downloadBytes/1e6/median(direct).Seconds(), "host-MB/s")
}

// serveBytes sends downloadBytes to everybody who connects.
func serveBytes(b *testing.B) net.Listener {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	go func() {
		chunk := make([]byte, 1<<20)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				for range downloadBytes / len(chunk) {
					if _, err := c.Write(chunk); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l
}

func timed(b *testing.B, f func() error) time.Duration {
	b.Helper()
	start := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

func median(all []time.Duration) time.Duration {
	all = slices.Clone(all)
	slices.Sort(all)
	return all[len(all)/2]
}
