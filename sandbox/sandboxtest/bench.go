package sandboxtest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

// downloadBytes is what one download of BenchmarkEgress carries.
const downloadBytes = 64 << 20

// BenchmarkEgress compares downloads through the egress proxy with direct ones
// of a public sandbox, which reaches this machine under the given address, or the
// World where that is Outside. Only New, Spec, World and Outside of the Config
// count.
func BenchmarkEgress(b *testing.B, cfg Config, address string) {
	chunk := make([]byte, 1<<20)
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/large" {
			return
		}
		for range downloadBytes / len(chunk) {
			_, _ = w.Write(chunk)
		}
	}))
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		b.Fatal(err)
	}
	_ = web.Listener.Close()
	web.Listener = listener
	web.Start()
	b.Cleanup(web.Close)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	cfg.World.Put("bench.test", "127.0.0.1:"+port)
	to := address + "/" + port
	if cfg.Outside {
		to = cfg.World.Address("bench.test").String() + "/80"
	}
	backend := cfg.New(b)
	for name, c := range map[string]struct {
		network sandbox.Network
		connect string
	}{
		"direct":  {sandbox.Network{}, to},
		"proxied": {sandbox.Network{Mode: sandbox.NetworkAllowlist, Hosts: []string{"bench.test"}}, "${http_proxy:7:9}/${http_proxy:17}"},
	} {
		spec := cfg.Spec
		spec.Name, spec.Network = "bench-"+name, c.network
		sb, err := backend.Create(b.Context(), spec)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = sb.Destroy(context.Background()) })
		for path, size := range map[string]int64{"large": downloadBytes, "small": 0} {
			script := fmt.Sprintf("exec 3<>/dev/tcp/%s && printf 'GET http://bench.test/%s HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3 | wc -c", c.connect, path)
			b.Run(name+"/"+path, func(b *testing.B) {
				b.SetBytes(size)
				for b.Loop() {
					out := &counter{}
					st, err := sb.Exec(b.Context(), sandbox.Command{Shell: script, Stdout: out})
					if err != nil || st.Code != 0 {
						b.Fatal(st, err)
					}
				}
			})
		}
	}
}
