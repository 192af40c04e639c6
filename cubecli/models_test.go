package cubecli_test

import (
	"net/http/httptest"
	"testing"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
)

// TestModel: the program of a cube's author lets a model play it, as proctor does.
func TestModel(t *testing.T) {
	t.Parallel()
	model := &llmtest.Server{Answer: func(r *llmtest.Request) llmtest.Turn {
		name, arguments := "guess", `{"n": 1}`
		if r.Turn > 0 {
			name, arguments = "final_step", "{}"
		}
		return llmtest.Turn{Calls: []llm.ToolCall{{Name: name, Arguments: arguments}}}
	}}
	server := httptest.NewServer(model)
	defer server.Close()
	p := newProgram(t, guess{}.cube())
	p.run("run", "-a", "tools").want(t, 2, "agent tools needs a model: give it as -m provider/model")
	p.job("played", "-a", "tools", "-m", "local/m", "--ak", "api_base="+server.URL+"/v1").
		want(t, 0, "3 trials: 3 scored", "1.0", "Models: ")
	if used := model.Counts()[llmtest.Account{Model: "m"}]; used.Answers < 6 {
		t.Errorf("the model answered %d times", used.Answers)
	}
	p.job("bounded", "-a", "tools", "-m", "local/m", "--ak", "api_base="+server.URL+"/v1", "-n", "1", "--budget-tokens", "1").
		want(t, 5, "budget")
}
