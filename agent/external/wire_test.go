package external

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/proctor-run/proctor/agent"
)

// FuzzWire: whatever a command prints, what goes further are answers, requests and the
// calling off of them, each an object on a line.
func FuzzWire(f *testing.F) {
	f.Add([]byte(`{"id":1,"method":"x"}` + "\n" + `{"id":1,"result":{}}` + "\nnoise\n[]\n" + `{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call"}}}`))
	f.Add([]byte(`{"method":"$/cancel_request"}` + "\n" + `{"id":null}` + "\n" + `{"id":{},"method":5,"params":[]}`))
	f.Fuzz(func(t *testing.T, printed []byte) {
		log, err := newJournal(agent.Env{LogDir: t.TempDir(), OutputLimit: 1 << 16}, "j", func() time.Time { return time.Unix(0, 0) })
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		w, received := newWire(ctx, log, io.Discard)
		passed := make(chan struct{})
		go func() {
			defer close(passed)
			for lines := bufio.NewScanner(received); lines.Scan(); {
				var m struct {
					ID     json.RawMessage `json:"id"`
					Method any             `json:"method"`
				}
				if err := json.Unmarshal(lines.Bytes(), &m); err != nil || m.ID == nil && m.Method != "$/cancel_request" {
					t.Errorf("%q goes further: %v", lines.Text(), err)
				}
				select {
				case <-w.asked:
				default:
				}
			}
		}()
		_, _ = w.lines.Write(printed)
		w.ended(cancel)
		_ = w.received.Close()
		<-passed
		if err := log.close(); err != nil {
			t.Error(err)
		}
	})
}
