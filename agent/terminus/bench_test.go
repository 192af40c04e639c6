package terminus

import (
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/llm/llmtest"
)

// BenchmarkStep is what an episode costs beside the model and the sandbox, at the end
// of a run of a hundred.
func BenchmarkStep(b *testing.B) {
	const episodes = 100
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		run := newBench(b, repeat(llmtest.Say(lsJSON), episodes), "max_turns", "100")
		run.setup()
		b.StartTimer()
		if _, err := run.agent.Run(b.Context(), run.env, agent.Task{Instruction: "Do it."}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/episodes, "µs/step")
}

// BenchmarkLongRun is the same with as much on the screen as a model sees at most, after
// three hundred episodes.
func BenchmarkLongRun(b *testing.B) {
	const episodes = 300
	for b.Loop() {
		b.StopTimer()
		run := newBench(b, repeat(llmtest.Say(lsJSON), episodes), "max_turns", "300")
		run.terminal.prints = func(string) string { return strings.Repeat("0123456789abcde\n", maxScreen/16) }
		run.setup()
		b.StartTimer()
		if _, err := run.agent.Run(b.Context(), run.env, agent.Task{Instruction: "Do it."}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/episodes, "µs/step")
}
