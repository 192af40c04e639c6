package terminus

import (
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
