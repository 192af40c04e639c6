package tools_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent/tools"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/llm"
)

// instant calls a tool at once, and keeps nothing.
type instant struct{ calls int }

func (*instant) Info() llm.Info { return llm.Info{Name: "anthropic/m", InputLimit: 1 << 30} }

func (m *instant) Complete(context.Context, *llm.Request) (*llm.Response, error) {
	m.calls++
	return &llm.Response{
		Message: llm.Message{Role: llm.Assistant, Calls: []llm.ToolCall{{ID: strconv.Itoa(m.calls), Name: "look", Arguments: `{"at": "x"}`}}},
		Usage:   &llm.Usage{Prompt: 1000, Completion: 10},
	}, nil
}

// BenchmarkSteps is an episode of 200 steps with 4 KiB of output each; what one step
// costs of its own is reported as µs/step.
func BenchmarkSteps(b *testing.B) {
	const steps = 200
	text := strings.Repeat("output\n", 600)
	for b.Loop() {
		a, err := tools.Entry().Stepped(config(b, &instant{}))
		if err != nil {
			b.Fatal(err)
		}
		obs := cube.Observe(cube.Text("Go."))
		for range steps {
			actions, err := a.Act(b.Context(), obs, offered())
			if err != nil {
				b.Fatal(err)
			}
			obs = cube.Observe(answerTo(*actions[0].ID, text))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*steps), "µs/step")
}
