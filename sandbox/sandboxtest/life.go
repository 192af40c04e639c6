package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

var backendObligations = []obligation{
	{"Name is a word", 0, func(t *testing.T, s *suite) {
		if n := s.backend.Name(); n == "" || strings.ContainsAny(n, " \t\n/") {
			t.Errorf("got name %q", n)
		}
	}},
	{"Create with an ended context leaves nothing", 0, func(t *testing.T, s *suite) {
		ctx, cancel := context.WithCancelCause(call(t))
		cancel(errCause)
		sb, err := s.backend.Create(ctx, s.spec())
		if err == nil {
			_ = sb.Destroy(call(t))
			t.Fatal("got a sandbox")
		}
		if !errors.Is(err, errCause) && !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v, want the context's", err)
		}
	}},
	{"a network mode beyond the Capabilities is ErrUnsupported", 0, func(t *testing.T, s *suite) {
		for _, c := range []struct {
			claimed bool
			network sandbox.Network
		}{
			{s.caps.NoNetwork, sandbox.Network{Mode: sandbox.NetworkNone}},
			{s.caps.Allowlist, sandbox.Network{Mode: sandbox.NetworkAllowlist, Hosts: []string{"example.org"}}},
			{s.caps.SwitchNetwork, sandbox.Network{Switchable: true}},
		} {
			if !c.claimed {
				spec := s.spec()
				spec.Network = c.network
				refused(t, s, spec)
			}
		}
	}},
	{"resources beyond the Capabilities are ErrUnsupported", 0, func(t *testing.T, s *suite) {
		if s.caps.GPUs {
			t.Skip("Capabilities.GPUs is claimed")
		}
		spec := s.spec()
		spec.Resources.GPUs = 1
		refused(t, s, spec)
	}},
	{"OwnRoot shows the host's files and needs no image", processes | hostRoot, func(t *testing.T, s *suite) {
		if s.caps.Build {
			t.Error("Capabilities.Build is claimed too, and nothing is built")
		}
		spec := s.spec()
		spec.Image = sandbox.Image{Ref: "sandboxtest.invalid/no/such:image", Build: &sandbox.Build{ContextDir: "/no/such/context"}}
		sb := s.create(t, spec)
		host, err := os.ReadFile("/etc/passwd")
		if err != nil {
			t.Fatal(err)
		}
		if got := output(t, sb, sh("cat /etc/passwd; echo .")); got != string(host)+"." {
			t.Errorf("/etc/passwd is not the host's: got %q", got)
		}
	}},
	{"OwnRoot leaves the host as it is", processes | hostRoot, func(t *testing.T, s *suite) {
		name := fmt.Sprintf("/sandboxtest-root-%d-%d", os.Getpid(), serial.Add(1))
		output(t, s.fresh(t), sh("echo x > "+name+" && test -s "+name))
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the host has what a command wrote to the root (%v)", err)
		}
	}},
	{"sandboxes have distinct ids", 0, func(t *testing.T, s *suite) {
		a, b := s.fresh(t), s.fresh(t)
		if a.ID() == "" || a.ID() == b.ID() {
			t.Errorf("got ids %q and %q", a.ID(), b.ID())
		}
	}},
	{"sandboxes do not share files", privateRoot, func(t *testing.T, s *suite) {
		a, b, dir := s.fresh(t), s.fresh(t), s.dir()
		upload(t, a, dir, pack(t, map[string]entry{"f": file(0o644, "x")}))
		if err := b.Download(call(t), dir, new(counter)); !errors.Is(err, sandbox.ErrNotExist) {
			t.Errorf("got error %v for another sandbox's file, want ErrNotExist", err)
		}
	}},
	{"sandboxes do not share processes", processes | privateRoot, func(t *testing.T, s *suite) {
		a, b, tag := s.fresh(t), s.fresh(t), s.tag()
		exec(t, a, tagged(tag, `(sleep 86400; :) & :`))
		waitAlive(t, a, tag)
		if n := alive(t, b, tag); n != 0 {
			t.Errorf("another sandbox's processes are seen: %d", n)
		}
	}},
	{"a destroyed sandbox's name can be used again", 0, func(t *testing.T, s *suite) {
		spec := s.spec()
		if err := s.create(t, spec).Destroy(call(t)); err != nil {
			t.Fatalf("Destroy: %v", err)
		}
		mark(t, s.create(t, spec))
	}},
}

func refused(t *testing.T, s *suite, spec sandbox.Spec) {
	t.Helper()
	sb, err := s.backend.Create(call(t), spec)
	if err == nil {
		_ = sb.Destroy(call(t))
	}
	if !errors.Is(err, sandbox.ErrUnsupported) {
		t.Errorf("network %q, %d GPUs: got error %v, want ErrUnsupported", spec.Network.Mode, spec.Resources.GPUs, err)
	}
}

var mountObligations = []obligation{
	{"what the host wrote is seen inside", mounted, func(t *testing.T, s *suite) {
		host := t.TempDir()
		writeHost(t, filepath.Join(host, "f"), "from host")
		target := s.dir()
		sb := s.mount(t, sandbox.Mount{Source: host, Target: target})
		if got := download(t, sb, target)["f"].body; got != "from host" {
			t.Errorf("got %q", got)
		}
		writeHost(t, filepath.Join(host, "later"), "later")
		if got := download(t, sb, target+"/later")["later"].body; got != "later" {
			t.Errorf("what is written after Create: got %q", got)
		}
	}},
	{"what commands write is seen on the host", mounted | processes, func(t *testing.T, s *suite) {
		host, target := t.TempDir(), s.dir()
		sb := s.mount(t, sandbox.Mount{Source: host, Target: target})
		output(t, sb, sh("echo -n inside >"+target+"/f"))
		readHost(t, filepath.Join(host, "f"), "inside")
	}},
	{"what is uploaded is seen on the host", mounted, func(t *testing.T, s *suite) {
		host, target := t.TempDir(), s.dir()
		sb := s.mount(t, sandbox.Mount{Source: host, Target: target})
		upload(t, sb, target+"/sub", pack(t, map[string]entry{"f": file(0o644, "up")}))
		readHost(t, filepath.Join(host, "sub", "f"), "up")
	}},
	{"Own lets the caller read and remove what users of the sandbox wrote", mounted | processes, func(t *testing.T, s *suite) {
		host, target := t.TempDir(), s.dir()
		sb := s.mount(t, sandbox.Mount{Source: host, Target: target})
		if _, ok := sandbox.As[sandbox.Owner](sb); !ok {
			t.Skip("the backend's sandboxes are no Owners")
		}
		exec(t, sb, sh("chmod 777 "+target))
		users := []string{"0:0"}
		if !s.cfg.OneUser {
			users = append(users, s.cfg.User.Name)
		}
		for _, user := range users {
			d := target + "/" + strings.ReplaceAll(user, ":", "-")
			output(t, sb, sandbox.Command{Shell: "umask 077; mkdir -p " + d + "/deep && echo -n mine > " + d + "/deep/f", User: user})
		}
		sandbox.Own(t.Context(), sb, target)
		for _, user := range users {
			readHost(t, filepath.Join(host, strings.ReplaceAll(user, ":", "-"), "deep", "f"), "mine")
		}
		if err := os.RemoveAll(filepath.Join(host, "0-0")); err != nil {
			t.Error(err)
		}
	}},
	{"a mounted file is a file", mounted, func(t *testing.T, s *suite) {
		host, target := filepath.Join(t.TempDir(), "f"), s.dir()+"/deep/g"
		writeHost(t, host, "one file")
		sb := s.mount(t, sandbox.Mount{Source: host, Target: target})
		if got := download(t, sb, target)["g"].body; got != "one file" {
			t.Errorf("got %q", got)
		}
	}},
	{"Guarded is held: no set-uid program works", mounted | guarded | processes | otherUser, func(t *testing.T, s *suite) {
		target := s.dir()
		sb := s.mount(t, sandbox.Mount{Source: t.TempDir(), Target: target, Guarded: true})
		output(t, sb, sh("chmod 755 "+target+" && cp \"$(command -v id)\" "+target+"/id && chmod 4755 "+target+"/id"))
		got := output(t, sb, sandbox.Command{Argv: []string{target + "/id", "-u"}, User: s.cfg.User.Name})
		if want := strconv.Itoa(s.cfg.User.UID); got != want {
			t.Errorf("a set-uid program runs as %s, want %s", got, want)
		}
	}},
	{"ReadOnly is held", mounted | processes, func(t *testing.T, s *suite) {
		host, target := t.TempDir(), s.dir()
		writeHost(t, filepath.Join(host, "f"), "kept")
		sb := s.mount(t, sandbox.Mount{Source: host, Target: target, ReadOnly: true})
		if r := exec(t, sb, sh("echo x >"+target+"/f || echo y >"+target+"/g")); r.Code == 0 {
			t.Error("writing to a read-only mount succeeded")
		}
		readHost(t, filepath.Join(host, "f"), "kept")
		notOnHost(t, filepath.Join(host, "g"))
	}},
	{"ReadOnly is held for what is mounted below", mounted | processes, func(t *testing.T, s *suite) {
		host, target := t.TempDir(), s.dir()
		sub := submount(t, host)
		writeHost(t, filepath.Join(sub, "f"), "kept")
		deep := submount(t, sub)
		sb := s.mount(t, sandbox.Mount{Source: host, Target: target, ReadOnly: true})
		inside := path.Join(target, filepath.Base(sub))
		if got := output(t, sb, sh("cat "+inside+"/f")); got != "kept" {
			t.Errorf("what is mounted below is not seen: got %q", got)
		}
		further := path.Join(inside, filepath.Base(deep))
		for _, command := range []string{"echo x >" + inside + "/f", "echo y >" + inside + "/g", "echo z >" + further + "/h"} {
			if r := exec(t, sb, sh(command)); r.Code == 0 {
				t.Errorf("%s: writing below a read-only mount succeeded", command)
			}
		}
		readHost(t, filepath.Join(sub, "f"), "kept")
		notOnHost(t, filepath.Join(sub, "g"))
		notOnHost(t, filepath.Join(deep, "h"))
	}},
	{"Guarded is held for what is mounted below", mounted | guarded | processes | otherUser, func(t *testing.T, s *suite) {
		host, target := t.TempDir(), s.dir()
		sub := submount(t, host)
		sb := s.mount(t, sandbox.Mount{Source: host, Target: target, Guarded: true})
		inside := path.Join(target, filepath.Base(sub))
		output(t, sb, sh("chmod 755 "+target+" "+inside+" && cp \"$(command -v id)\" "+inside+"/id && chmod 4755 "+inside+"/id"))
		got := output(t, sb, sandbox.Command{Argv: []string{inside + "/id", "-u"}, User: s.cfg.User.Name})
		if want := strconv.Itoa(s.cfg.User.UID); got != want {
			t.Errorf("a set-uid program runs as %s, want %s", got, want)
		}
	}},
	{"mounts are made in order, one inside another", mounted, func(t *testing.T, s *suite) {
		outer, inner, target := t.TempDir(), t.TempDir(), s.dir()
		sb := s.mount(t, sandbox.Mount{Source: outer, Target: target}, sandbox.Mount{Source: inner, Target: target + "/in"})
		upload(t, sb, target+"/in", pack(t, map[string]entry{"f": file(0o644, "x")}))
		readHost(t, filepath.Join(inner, "f"), "x")
		notOnHost(t, filepath.Join(outer, "in", "f"))
	}},
	{"Destroy leaves the sources alone", mounted, func(t *testing.T, s *suite) {
		host, target := t.TempDir(), s.dir()
		writeHost(t, filepath.Join(host, "f"), "kept")
		sb := s.mount(t, sandbox.Mount{Source: host, Target: target})
		if err := sb.Destroy(call(t)); err != nil {
			t.Fatalf("Destroy: %v", err)
		}
		readHost(t, filepath.Join(host, "f"), "kept")
	}},
}

func (s *suite) mount(t *testing.T, mounts ...sandbox.Mount) sandbox.Sandbox {
	t.Helper()
	spec := s.spec()
	spec.Mounts = append(slices.Clone(spec.Mounts), mounts...)
	return s.create(t, spec)
}

var networkObligations = []obligation{
	{"mode no-network leaves only the loopback interface", processes | noNetwork, func(t *testing.T, s *suite) {
		spec := s.spec()
		spec.Network = sandbox.Network{Mode: sandbox.NetworkNone}
		sb := s.create(t, spec)
		got := output(t, sb, sh(`tail -n +3 /proc/net/dev | while IFS=: read -r name _; do echo $name; done | grep -vx lo; :`))
		if got != "" {
			t.Errorf("interfaces besides lo: %q", got)
		}
		if r := exec(t, sb, sh(`(echo >/dev/tcp/192.0.2.1/80) 2>/dev/null`)); r.Code == 0 {
			t.Error("an address outside could be reached")
		}
	}},
	{"the host's loopback services are not reached without network", processes | noNetwork, func(t *testing.T, s *suite) {
		port := listenHost(t)
		spec := s.spec()
		spec.Network = sandbox.Network{Mode: sandbox.NetworkNone}
		sb := s.create(t, spec)
		if r := exec(t, sb, sh(fmt.Sprintf(`(echo >/dev/tcp/127.0.0.1/%d) 2>/dev/null`, port))); r.Code == 0 {
			t.Error("a service on the host's loopback could be reached")
		}
	}},
}

var destroyObligations = []obligation{
	{"is idempotent", 0, func(t *testing.T, s *suite) {
		sb := s.fresh(t)
		for i := range 3 {
			if err := sb.Destroy(call(t)); err != nil {
				t.Errorf("call %d: %v", i+1, err)
			}
		}
	}},
	{"can be called concurrently", 0, func(t *testing.T, s *suite) {
		sb := s.fresh(t)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := sb.Destroy(call(t)); err != nil {
					t.Errorf("Destroy: %v", err)
				}
			})
		}
		wg.Wait()
	}},
	{"every call after it is ErrDestroyed", 0, func(t *testing.T, s *suite) {
		sb := s.fresh(t)
		m := mark(t, sb)
		if err := sb.Destroy(call(t)); err != nil {
			t.Fatalf("Destroy: %v", err)
		}
		_, execErr := sb.Exec(call(t), sh(ScriptExit3))
		_, markErr := sb.Mark(call(t))
		for what, err := range map[string]error{
			"Exec": execErr, "Mark": markErr,
			"KillTree": sb.KillTree(call(t), m, shortGrace),
			"Upload":   sb.Upload(call(t), s.dir(), bytes.NewReader(pack(t, nil))),
			"Download": sb.Download(call(t), "/", new(counter)),
		} {
			if !errors.Is(err, sandbox.ErrDestroyed) {
				t.Errorf("%s: got error %v, want ErrDestroyed", what, err)
			}
		}
	}},
	{"ends an Exec under way without waiting for it", 0, func(t *testing.T, s *suite) {
		sb := s.fresh(t)
		cmd := sh(ScriptHang)
		if !s.cfg.Simulated {
			cmd = sh(`trap '' TERM; echo ready; while :; do sleep 0.05; done`)
		}
		u := start(t, call(t), sb, withGrace(cmd, 10*limit))
		u.untilReady(t)
		if err := sb.Destroy(call(t)); err != nil {
			t.Errorf("Destroy: %v", err)
		}
		u.wait(t)
		if u.err == nil {
			t.Errorf("the Exec under way: got status %+v, want ErrDestroyed or an error of its own", u.status)
		}
	}},
	{"ends every process", processes | mounted, func(t *testing.T, s *suite) {
		host, target := t.TempDir(), s.dir()
		sb := s.mount(t, sandbox.Mount{Source: host, Target: target})
		exec(t, sb, sh(fmt.Sprintf(`(trap '' TERM HUP; cd %s; while :; do echo >>beat; sleep 0.02; done) >/dev/null 2>&1 & until [ -s %s/beat ]; do sleep 0.01; done`, target, target)))
		if err := sb.Destroy(call(t)); err != nil {
			t.Fatalf("Destroy: %v", err)
		}
		stands(t, filepath.Join(host, "beat"))
	}},
	{"with an ended context it still leaves nothing, or can be called again", 0, func(t *testing.T, s *suite) {
		sb := s.fresh(t)
		ctx, cancel := context.WithCancel(call(t))
		cancel()
		_ = sb.Destroy(ctx)
		if err := sb.Destroy(call(t)); err != nil {
			t.Errorf("Destroy after one with an ended context: %v", err)
		}
	}},
}

func writeHost(t testing.TB, name, body string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readHost(t testing.TB, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("reading %s on the host: got %q, %v; want %q", filepath.Base(name), got, err, want)
	}
}

func notOnHost(t testing.TB, name string) {
	t.Helper()
	if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s was made on the host (%v)", name, err)
	}
}
