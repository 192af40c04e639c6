package logs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkRead reads logs of two sizes, the one ten times the other: the time of both
// should be in proportion.
func BenchmarkRead(b *testing.B) {
	for agent, file := range mainFiles {
		for _, size := range []int{6 << 20, 60 << 20} {
			b.Run(fmt.Sprintf("%s/%dMiB", agent, size>>20), func(b *testing.B) {
				dir := b.TempDir()
				data := grown(mustRead(b, agent), size)
				name := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
					b.Fatal(err)
				}
				if err := os.WriteFile(name, data, 0o600); err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					if got, err := convert(agent, Input{Dir: dir}); err != nil || got.Trajectory == nil || got.Truncated != nil {
						b.Fatal(err, got.Truncated)
					}
				}
			})
		}
	}
}

// grown is a log of a size: its records again and again, or the messages of its document.
func grown(text string, size int) []byte {
	var out bytes.Buffer
	begin, end := 0, len(text)
	for _, list := range []string{`"messages": [`, `"history": [`} {
		if at := strings.Index(text, list); at >= 0 && strings.HasPrefix(text, "{\n") {
			begin, end = at+len(list), strings.LastIndex(text, "\n  ],")
		}
	}
	out.WriteString(text[:begin])
	for i := 0; out.Len() < size; i++ {
		if i > 0 && begin > 0 {
			out.WriteByte(',')
		}
		out.WriteString(text[begin:end])
	}
	out.WriteString(text[end:])
	return out.Bytes()
}
