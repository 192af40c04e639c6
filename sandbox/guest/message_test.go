package guest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/sandbox/internal/frames"
)

func TestRequestsSurviveTheWire(t *testing.T) {
	t.Parallel()
	text := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "text")) })
	texts := rapid.SliceOfN(text, 1, 5)
	rapid.Check(t, func(t *rapid.T) {
		q := execRequest{
			argv: texts.Draw(t, "argv"), env: texts.Draw(t, "env"), dir: text.Draw(t, "dir"), user: text.Draw(t, "user"),
			stdin: rapid.Bool().Draw(t, "stdin"), stdout: rapid.Bool().Draw(t, "stdout"),
			stderr: rapid.Bool().Draw(t, "stderr"), merged: rapid.Bool().Draw(t, "merged"),
		}
		if got, err := decodeExecRequest(q.encode()); err != nil || !reflect.DeepEqual(got, q) {
			t.Errorf("got %+v, %v; want %+v", got, err, q)
		}
		k := killRequest{mark: text.Draw(t, "mark"), grace: time.Duration(rapid.Int64().Draw(t, "grace"))}
		if got, err := decodeKillRequest(k.encode()); err != nil || got != k {
			t.Errorf("got %+v, %v; want %+v", got, err, k)
		}
		o := ownRequest{dir: text.Draw(t, "dir"), uid: int(rapid.Int32().Draw(t, "uid")), gid: int(rapid.Int32().Draw(t, "gid"))}
		if got, err := decodeOwnRequest(o.encode()); err != nil || got != o {
			t.Errorf("got %+v, %v; want %+v", got, err, o)
		}
		r := reply{
			failure: failure(rapid.Byte().Draw(t, "failure")), message: text.Draw(t, "message"),
			code: int(rapid.Int32().Draw(t, "code")), killed: rapid.Bool().Draw(t, "killed"),
		}
		if got, err := decodeReply(r.encode()); err != nil || got != r {
			t.Errorf("got %+v, %v; want %+v", got, err, r)
		}
	})
}

func TestLongMessagesAreCut(t *testing.T) {
	t.Parallel()
	b := reply{message: strings.Repeat("x", 10*maxMessage)}.encode()
	if r, err := decodeReply(b); err != nil || len(r.message) != maxMessage {
		t.Errorf("got %d bytes, %v; want %d", len(r.message), err, maxMessage)
	}
}

// FuzzReplies feeds the client's decoders, FuzzRequests the supervisor's: they
// may refuse, and must neither panic nor allocate beyond their limits.
func FuzzReplies(f *testing.F) {
	f.Add(rawFrame(repDone, 1, reply{code: 1, message: "m"}.encode()))
	f.Add(append(rawFrame(repStdout, 2, []byte("out")), rawFrame(repCredit, 3, []byte{0, 0, 1, 0})...))
	now := make(chan struct{})
	close(now)
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &Client{calls: map[uint32]*call{}}
		for id := range uint32(4) {
			k := &call{id: id, data: frames.NewInbox(window), credit: frames.NewCredit(window)}
			k.credit.Take(100, nil, nil)
			c.calls[id] = k
		}
		r := bytes.NewReader(data)
		for {
			fr, err := frames.Read(r, &c.bufs, replyLimit)
			if err != nil {
				break
			}
			if len(fr.Payload) > frames.MaxData {
				t.Fatalf("a frame of %d bytes was let in", len(fr.Payload))
			}
			if c.dispatch(fr) != nil {
				break
			}
		}
		for _, k := range c.calls {
			credit := k.credit.Take(2*window, now, nil)
			if held := k.data.Held(); held > window+frames.MaxData+frames.Cost || credit > window {
				t.Fatalf("%d bytes are held, credit is %d", held, credit)
			}
			for {
				fr, ok := k.data.Pop(now, nil)
				if !ok {
					break
				}
				if fr.Type == repDone {
					_, _ = decodeReply(fr.Payload)
				}
			}
		}
	})
}

func FuzzRequests(f *testing.F) {
	f.Add(rawFrame(reqExec, 1, execRequest{argv: []string{"a"}, env: []string{"K=v"}, stdin: true}.encode()))
	f.Add(rawFrame(reqOwn, 1, ownRequest{dir: "/logs", uid: 1000, gid: 1000}.encode()))
	f.Add(rawFrame(reqKillTree, 1, killRequest{mark: "m", grace: time.Second}.encode()))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		for {
			fr, err := frames.Read(r, new(frames.Pool), requestLimit)
			if err != nil {
				return
			}
			if q, err := decodeExecRequest(fr.Payload); err == nil {
				again, err := decodeExecRequest(q.encode())
				if err != nil || !reflect.DeepEqual(again, q) {
					t.Fatalf("%+v came back as %+v, %v", q, again, err)
				}
			}
			_, _ = decodeKillRequest(fr.Payload)
			_, _ = decodeOwnRequest(fr.Payload)
			_, _ = frames.CreditOf(fr.Payload)
		}
	})
}

// etc is a file system for resolveUser.
type etc map[string]string

func (e etc) open(name string) (io.ReadCloser, error) {
	text, ok := e[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

func TestResolveUser(t *testing.T) {
	t.Parallel()
	files := etc{
		"/etc/passwd": "root:x:0:0:root:/root:/bin/bash\nbroken\n#:x\nagent:x:1000:1001:A:/home/agent:/bin/sh\n" +
			"twin:x:1000:1002::/home/twin:/bin/sh\n7:x:42:43::/seven:/bin/sh\nnohome:x:50:51::: \nbad:x:-1:0::/:\n",
		"/etc/group": "root:x:0:\nusers:x:100:agent,twin\nwheel:x:10:agent\nagent:x:1001:\n8:x:88:\n",
	}
	for _, c := range []struct {
		user string
		want account
		err  string
	}{
		{"", account{home: "/root"}, ""},
		{"root", account{home: "/root"}, ""},
		{"agent", account{uid: 1000, gid: 1001, groups: []uint32{100, 10}, home: "/home/agent"}, ""},
		{"1000", account{uid: 1000, gid: 1001, groups: []uint32{100, 10}, home: "/home/agent"}, ""},
		{"twin", account{uid: 1000, gid: 1002, groups: []uint32{100}, home: "/home/twin"}, ""},
		{"agent:wheel", account{uid: 1000, gid: 10, home: "/home/agent"}, ""},
		{"agent:77", account{uid: 1000, gid: 77, home: "/home/agent"}, ""},
		{"agent:8", account{uid: 1000, gid: 88, home: "/home/agent"}, ""},
		{"7", account{uid: 42, gid: 43, home: "/seven"}, ""},
		{"4000000000", account{uid: 4000000000, home: "/"}, ""},
		{"5:6", account{uid: 5, gid: 6, home: "/"}, ""},
		{":100", account{gid: 100, home: "/root"}, ""},
		{"agent:", account{uid: 1000, gid: 1001, groups: []uint32{100, 10}, home: "/home/agent"}, ""},
		{"nohome", account{uid: 50, gid: 51, home: "/"}, ""},
		{"nobody", account{}, `unknown user "nobody"`},
		{"bad", account{}, `unknown user "bad"`},
		{"agent:none", account{}, `unknown group "none"`},
		{"4294967296", account{}, "unknown user"},
		{"-1", account{}, "unknown user"},
	} {
		got, err := resolveUser(c.user, files.open)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: got %+v, error %v; want error %q", c.user, got, err, c.err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %+v, error %v; want %+v", c.user, got, err, c.want)
		}
	}
	if got, err := resolveUser("12:13", etc{}.open); err != nil || got.uid != 12 || got.gid != 13 {
		t.Errorf("without files: got %+v, %v", got, err)
	}
	fail := func(string) (io.ReadCloser, error) { return nil, errors.New("broken disk") }
	if _, err := resolveUser("root", fail); err == nil {
		t.Error("an unreadable file: got no error")
	}
}

func FuzzResolveUser(f *testing.F) {
	f.Add("agent:wheel", "agent:x:1:2::/h:/s\n", "wheel:x:3:agent\n")
	f.Fuzz(func(_ *testing.T, user, passwd, group string) {
		_, _ = resolveUser(user, etc{"/etc/passwd": passwd, "/etc/group": group}.open)
	})
}
